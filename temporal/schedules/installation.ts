import {
  type Client,
  ScheduleAlreadyRunning,
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
import { reconcileScheduleId, sweeperScheduleId, upkeepScheduleId } from '../workflowIds.ts';

/** A workflow that a schedule starts again and again. */
export interface Recurring<W extends Workflow> {
  scheduleId: string;
  workflow: W;
  args: Parameters<W>;
  taskQueue: string;
  everyMs: number;
  /** Run once right away too. */
  startsNow?: boolean;
  /** How long one run may take, in Temporal's notation. */
  limit: '1 hour' | '6 hours';
  summary: string;
}

/** Makes a schedule, or brings it up to date. One that an operator has paused stays paused. */
export async function ensureSchedule<W extends Workflow>(client: Client, recurring: Recurring<W>): Promise<void> {
  const { scheduleId, workflow, args, taskQueue, everyMs, startsNow = false, limit, summary } = recurring;
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
    } as unknown as ScheduleOptionsAction,
    // A late run makes the next one superfluous, and missed runs have nothing to add.
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 minute' as const },
  };
  try {
    await client.schedule.create({ scheduleId, ...schedule, state: { triggerImmediately: startsNow } });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    const handle = client.schedule.getHandle(scheduleId);
    await handle.update((previous) => ({ ...schedule, state: previous.state }));
    if (startsNow) await handle.trigger(ScheduleOverlapPolicy.SKIP);
  }
}

/** Whether the sweeper's schedule is there. It is made last, so the others are too. */
export async function hasSchedules(client: Client, { installation }: Pick<Config, 'installation'>): Promise<boolean> {
  try {
    await client.schedule.getHandle(sweeperScheduleId(installation)).describe();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
}

/** The schedules of an installation. */
export async function ensureSchedules(client: Client, { installation, billing, sweeper }: Config): Promise<void> {
  const taskQueue = mainTaskQueue(installation);
  await ensureSchedule(client, {
    scheduleId: reconcileScheduleId(installation),
    workflow: reconcilePayments,
    args: [],
    taskQueue,
    everyMs: billing.reconcileMinutes * 60_000,
    limit: '6 hours',
    summary: 'Reconcile payments: credit what was paid, report what cannot be explained',
  });
  await ensureSchedule(client, {
    scheduleId: upkeepScheduleId(installation),
    workflow: sweep,
    args: [sweeperActivities.upkeep],
    taskQueue,
    everyMs: sweeper.intervalSeconds * 1_000,
    startsNow: true,
    limit: '1 hour',
    summary: 'Upkeep: delete what is past its retention, compare, index',
  });
  await ensureSchedule(client, {
    scheduleId: sweeperScheduleId(installation),
    workflow: sweep,
    args: [sweeperActivities.rescue],
    taskQueue,
    everyMs: sweeper.intervalSeconds * 1_000,
    // What a crash left behind is found at the next start, not an interval later.
    startsNow: true,
    limit: '1 hour',
    summary: 'Sweep: start what was lost, end what has vanished',
  });
}
