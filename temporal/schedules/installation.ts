import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
  type ScheduleOptionsAction,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { sweeperActivities } from '../../activities/main.ts';
import type { Config } from '../../config/index.ts';
import { reconcilePayments } from '../../workflows/billing/reconcilePayments.ts';
import { sweep } from '../../workflows/operations/sweep.ts';
import { mainTaskQueue } from '../taskQueues.ts';
import { contentsScheduleId, reconcileScheduleId, sweeperScheduleId, upkeepScheduleId } from '../workflowIds.ts';

/** A workflow that a schedule starts repeatedly. */
export interface Recurring<W extends Workflow> {
  scheduleId: string;
  workflow: W;
  args: Parameters<W>;
  taskQueue: string;
  everyMs: number;
  /** Also run once right away. */
  startsNow?: boolean;
  /** The installation's identity, kept with the schedule for {@link assertOwnSchedules}. */
  identity: string;
  /** How long one run may take, in Temporal's notation. */
  limit: '1 hour' | '6 hours';
  summary: string;
}

/** Makes a schedule or brings it up to date. A schedule that an operator has paused stays paused. */
async function ensureSchedule<W extends Workflow>(client: Client, recurring: Recurring<W>): Promise<void> {
  const { scheduleId, workflow, args, taskQueue, everyMs, startsNow = false, limit, identity, summary } = recurring;
  const schedule = {
    spec: { intervals: [{ every: everyMs }] },
    action: {
      type: 'startWorkflow',
      workflowType: workflow,
      args,
      workflowId: scheduleId,
      taskQueue,
      workflowExecutionTimeout: limit,
      staticSummary: summary,
      memo: { [identityMemo]: identity },
    } as unknown as ScheduleOptionsAction,
    // A late run makes the next one superfluous, and missed runs add nothing.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' as const },
  };
  try {
    await client.schedule.create({ scheduleId, ...schedule, state: { triggerImmediately: startsNow } });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const handle = client.schedule.getHandle(scheduleId);
    await handle.update((previous) => {
      assertOwn(scheduleId, previous, identity);
      return { ...schedule, state: previous.state };
    });
    if (startsNow) await handle.trigger(ScheduleOverlapPolicy.SKIP);
  }
}

const identityMemo = 'atriumInstallation';

/** Another installation uses this one's name in the same namespace of Temporal. */
export class InstallationTakenError extends Error {
  override readonly name = 'InstallationTakenError';
}

/** A schedule without an identity is from an earlier version and counts as our own. */
function assertOwn(scheduleId: string, { action }: Pick<ScheduleDescription, 'action'>, identity: string): void {
  const owner = action.memo?.[identityMemo];
  if (owner === undefined || owner === identity) return;
  throw new InstallationTakenError(
    `The schedule ${scheduleId} in this namespace of Temporal belongs to another installation (${owner}; this one is ${identity}), such as the one that this is a restored copy of: each would do the other's work. Give this one a namespace of its own (ATRIUM_TEMPORAL_NAMESPACE). Where the other is gone for good, remove its schedules: temporal schedule delete --schedule-id ${scheduleId}`,
  );
}

/**
 * Throws {@link InstallationTakenError} when another installation owns the queues and schedules of this name. Checked
 * before any work is taken from them.
 */
export async function assertOwnSchedules(
  client: Client,
  { installation }: Pick<Config, 'installation'>,
  identity: string,
): Promise<void> {
  for (const scheduleId of [sweeperScheduleId(installation), reconcileScheduleId(installation)]) {
    try {
      assertOwn(scheduleId, await client.schedule.getHandle(scheduleId).describe(), identity);
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    }
  }
}

/** Whether the sweeper's schedule exists. It is made last, so the others exist too. */
export async function hasSchedules(client: Client, { installation }: Pick<Config, 'installation'>): Promise<boolean> {
  try {
    await client.schedule.getHandle(sweeperScheduleId(installation)).describe();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
}

/** Makes all schedules of an installation, or brings them up to date. */
export async function ensureSchedules(
  client: Client,
  { installation, billing, sweeper }: Config,
  identity: string,
): Promise<void> {
  const taskQueue = mainTaskQueue(installation);
  await ensureSchedule(client, {
    scheduleId: reconcileScheduleId(installation),
    workflow: reconcilePayments,
    args: [],
    taskQueue,
    identity,
    everyMs: billing.reconcileMinutes * 60_000,
    limit: '6 hours',
    summary: 'Reconcile payments: credit what was paid, report what cannot be explained',
  });
  await ensureSchedule(client, {
    scheduleId: upkeepScheduleId(installation),
    workflow: sweep,
    args: [sweeperActivities.upkeep, '10 minutes'],
    taskQueue,
    identity,
    everyMs: sweeper.intervalSeconds * 1_000,
    startsNow: true,
    limit: '1 hour',
    summary: 'Upkeep: delete what is past its retention, compare, index',
  });
  await ensureSchedule(client, {
    scheduleId: contentsScheduleId(installation),
    workflow: sweep,
    args: [sweeperActivities.contents, '6 hours'],
    taskQueue,
    identity,
    everyMs: sweeper.intervalSeconds * 1_000,
    startsNow: true,
    limit: '6 hours',
    summary: 'Contents: hold what may be damaged against its hash',
  });
  await ensureSchedule(client, {
    scheduleId: sweeperScheduleId(installation),
    workflow: sweep,
    args: [sweeperActivities.rescue, '10 minutes'],
    taskQueue,
    identity,
    everyMs: sweeper.intervalSeconds * 1_000,
    // What a crash left behind is found at the next start, not an interval later.
    startsNow: true,
    limit: '1 hour',
    summary: 'Sweep: start what was lost, end what has vanished',
  });
}
