import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { takeTick } from '../../base/schedule.ts';
import type { ServingDeps } from '../computers/servingComputer.ts';
import { transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { findPlaces } from '../drive/place.ts';
import { isQuiet } from '../installation/installation.ts';
import { type App, findApp, lockedApp } from './app.ts';
import { addRun } from './askToRun.ts';
import { scheduleNamed } from './manifest.ts';
import { type PlaceOfRuns, placeOfComponent } from './placeOfRuns.ts';
import { runOfTrigger } from './run.ts';
import { type AppSchedule, dueWith, findSchedule, jitterMsOf, lockSchedule } from './schedules.ts';

/** The result of looking at a schedule. */
export interface DueRun {
  /** The run of the tick, which is to be started. */
  run?: { id: string; spaceId: string };
  /** Earlier runs that must end for it. */
  interrupted?: { id: string; spaceId: string }[];
  /** How long to wait for the tick, if only its jitter is left. */
  waitMs?: number;
}

interface Limits {
  catchUpMs: number;
  /** How far the caller's clock may be ahead of ours. */
  aheadMs: number;
}

/**
 * Advances a schedule whose tick has come, and adds the run of that tick. However often this is called, a tick has one
 * run. Several missed ticks share one run.
 */
export async function takeDueRun(deps: ServingDeps, scheduleId: string, limits: Limits): Promise<DueRun> {
  const { database } = deps;
  // Leaves the schedule alone: resuming the installation skips or makes up for the missed ticks.
  if (await isQuiet(database)) return {};
  const found = await findSchedule(database, scheduleId);
  const known = found && (await findApp(database, found.appId));
  if (found === undefined || known === undefined) return {};
  const { environment } = scheduleNamed(known.manifest, found.component) ?? {};
  const place = await placeOrCode(deps, known, environment);
  return transaction(database, async (tx) => {
    const app = await lockedApp(tx, found.appId);
    const schedule = app && (await lockSchedule(tx, found));
    if (app === undefined || schedule?.nextAt == null || schedule.dueAt === null) return {};
    const now = Date.now() + limits.aheadMs;
    const aheadMs = schedule.dueAt.getTime() - now;
    if (aheadMs > 0) return schedule.nextAt.getTime() <= now ? { waitMs: aheadMs } : {};
    const until = new Date(now - jitterMsOf(schedule));
    const { tick, next } = takeTick(schedule, schedule.nextAt, until, limits.catchUpMs);
    const taken = tick === undefined ? 'MISSED' : await addRunOf(tx, { app, schedule, tick, place, environment });
    const isRun = typeof taken !== 'string';
    await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [
      {
        ...dueWith(schedule, next),
        lastAt: tick ?? schedule.nextAt,
        lastCode: isRun ? null : taken,
        lastRunId: isRun ? taken.run.id : null,
      },
      schedule.id,
    ]);
    return isRun ? taken : {};
  });
}

/** The run of a tick, or the code that says why there is none. */
async function addRunOf(
  tx: Transaction,
  {
    app,
    schedule,
    tick,
    place,
    environment,
  }: { app: App; schedule: AppSchedule; tick: Date; place: PlaceOfRuns | string; environment: string | undefined },
): Promise<(DueRun & { run: { id: string; spaceId: string } }) | string> {
  const { itemId, spaceId, authority, runsAs: userId } = app;
  if (app.treeWaits) return 'APP_VERSION_WAITS';
  const component = scheduleNamed(app.manifest, schedule.component);
  if (component === undefined) return 'APP_COMPONENT_UNKNOWN';
  if ((await findPlaces(tx, [itemId])).get(itemId)?.isLive !== true) return 'APP_IN_TRASH';
  const triggerKey = `schedule:${component.name}:${tick.toISOString()}`;
  // The schedule was changed back and forth, and this tick has run before.
  const known = await runOfTrigger(tx, app.id, triggerKey);
  if (known !== undefined) return { run: { id: known.id, spaceId } };
  const before = await activeRunsOf(tx, app.id, component.name);
  if (before.length > 0 && component.overlap === 'skip') return 'OVERLAP';
  // The place was found before the app was locked. The caller looks again.
  if (component.environment !== environment) throw new Error('The environment of the component has changed meanwhile.');
  if (typeof place === 'string') return place;
  const run = {
    app,
    id: newId('run'),
    component,
    place,
    trigger: 'schedule',
    triggerKey,
    userId,
    ...authority,
  } as const;
  try {
    await addRun(tx, run);
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
  const asked = { run: { id: run.id, spaceId } };
  if (before.length === 0 || component.overlap !== 'interrupt') return asked;
  const cancel = 'UPDATE app_runs SET cancel_requested_at = ? WHERE id IN (?) AND cancel_requested_at IS NULL';
  await execute(tx, cancel, [new Date(), before]);
  return { ...asked, interrupted: before.map((id) => ({ id, spaceId })) };
}

/** Where a component runs, or the code that says why it cannot. */
async function placeOrCode(
  deps: ServingDeps,
  app: App,
  environment: string | undefined,
): Promise<PlaceOfRuns | string> {
  try {
    const actor = { userId: app.runsAs, credentialId: null, address: null };
    return await placeOfComponent(deps, app, { ...(environment !== undefined && { environment }) }, actor);
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
}

async function activeRunsOf(tx: Transaction, appId: string, component: string): Promise<string[]> {
  const sql = "SELECT id FROM app_runs WHERE app_id = ? AND component = ? AND status IN ('queued', 'running')";
  return (await select<{ id: string }>(tx, sql, [appId, component])).map(({ id }) => id);
}
