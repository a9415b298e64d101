import { DomainError } from '../../base/errors.ts';
import { findApp } from '../../models/apps/app.ts';
import { takeDueRun } from '../../models/apps/dueRun.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import { findSchedule } from '../../models/apps/schedules.ts';
import { isAway } from '../../models/database/unavailable.ts';
import { openLiving } from '../../models/drive/changes.ts';
import type { AppDeps } from './deps.ts';

const lookTimeoutMs = 20_000;

type Deps = Pick<AppDeps, 'appManifests' | 'config' | 'database' | 'workflows'>;

/**
 * Advances a schedule whose tick has come according to the current manifest, and starts the run of that tick. Returns
 * how long to wait if only the schedule's jitter is left.
 */
export async function takeDueAppRun(
  deps: Deps,
  { scheduleId, aheadMs }: { scheduleId: string; aheadMs: number },
): Promise<number | undefined> {
  const { config, database, workflows } = deps;
  const schedule = await findSchedule(database, scheduleId);
  if (schedule === undefined) return undefined;
  const { appId, dueAt } = schedule;
  if (dueAt !== null && dueAt.getTime() <= Date.now() + aheadMs) await readApp(deps, appId);
  const { run, interrupted = [], waitMs } = await takeDueRun(deps, scheduleId, { ...config.apps, aheadMs });
  // Waiting runs are told here. For a running one, the worker of its attempt notices.
  for (const one of interrupted) void workflows.startRun(one);
  if (run !== undefined) await workflows.startRun(run);
  return waitMs;
}

/** Takes an app's present content into use, if allowed. If it cannot be read now, the last reading stays. */
export async function readApp(deps: Pick<Deps, 'appManifests' | 'database'>, appId: string): Promise<void> {
  const app = await findApp(deps.database, appId);
  if (app === undefined) return;
  try {
    const { item } = await openLiving(deps.database, app.spaceId, app.itemId);
    await lookAtApp(deps, app, item, AbortSignal.timeout(lookTimeoutMs));
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    if (!isLate && !isAway(error) && !(error instanceof DomainError)) throw error;
  }
}
