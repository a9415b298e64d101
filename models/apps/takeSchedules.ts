import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { execute, insert, select } from '../database/sql.ts';
import type { AppManifest, ScheduleComponent } from './manifest.ts';
import { type AppSchedule, nextOf, scheduleColumns, scheduleOf } from './schedules.ts';

interface Of {
  id: string;
  itemId: string;
  spaceId: string;
}

/** How many schedules that have left the manifest are kept for their return. */
const mostGone = 100;

/** Makes a locked app's schedules match its manifest. A paused one stays paused, even if it was gone in between. */
export async function takeSchedules(tx: Transaction, app: Of & { manifest: AppManifest }): Promise<void> {
  const wanted = app.manifest.components.filter((component) => component.kind === 'schedule');
  const sql = `SELECT id, ${scheduleColumns} FROM app_schedules WHERE app_id = ? FOR UPDATE`;
  const known = new Map((await select<object>(tx, sql, [app.id])).map(scheduleOf).map((one) => [one.component, one]));
  for (const component of wanted) {
    const found = known.get(component.name);
    known.delete(component.name);
    if (found === undefined) await addSchedule(tx, app, component);
    else if (found.goneAt === null) await changeSchedule(tx, found, component);
    else await bringBack(tx, found, component);
  }
  const left = [...known.values()];
  for (const schedule of left) if (schedule.goneAt === null) await leave(tx, schedule);
  const newestFirst = left.toSorted((a, b) => (b.goneAt?.getTime() ?? Infinity) - (a.goneAt?.getTime() ?? Infinity));
  const forgotten = newestFirst.slice(mostGone).map(({ id }) => id);
  if (forgotten.length > 0) await execute(tx, 'DELETE FROM app_schedules WHERE id IN (?)', [forgotten]);
}

/** The schedule has no ticks until the manifest names it again. */
async function leave(tx: Transaction, { id, version }: AppSchedule): Promise<void> {
  const row = { goneAt: new Date(), nextAt: null, dueAt: null, version: version + 1 };
  await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [row, id]);
}

async function bringBack(
  tx: Transaction,
  known: AppSchedule,
  { cron, timeZone, jitterSeconds }: ScheduleComponent,
): Promise<void> {
  const says = { cron, timeZone, jitterSeconds };
  const next = known.enabled ? nextOf({ ...known, ...says }, new Date()) : {};
  const row = { cron, timeZone, jitterSeconds, version: known.version + 1, goneAt: null };
  await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [{ ...row, ...next }, known.id]);
}

async function addSchedule(
  tx: Transaction,
  app: Of,
  { name, cron, timeZone, jitterSeconds }: ScheduleComponent,
): Promise<void> {
  const id = newId('appSchedule');
  const now = new Date();
  await insert(tx, 'app_schedules', {
    ...{ id, appId: app.id, itemId: app.itemId, spaceId: app.spaceId, component: name },
    ...{ cron, timeZone, jitterSeconds, enabled: 1, failures: 0, version: 1 },
    ...nextOf({ id, cron, timeZone, jitterSeconds }, now),
    createdAt: now,
  });
}

async function changeSchedule(
  tx: Transaction,
  known: AppSchedule,
  { cron, timeZone, jitterSeconds }: ScheduleComponent,
): Promise<void> {
  const isSame = known.cron === cron && known.timeZone === timeZone && known.jitterSeconds === jitterSeconds;
  if (isSame) return;
  const next = known.enabled ? nextOfChanged(known, { ...known, cron, timeZone, jitterSeconds }) : {};
  const row = { cron, timeZone, jitterSeconds, version: known.version + 1, ...next };
  await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [row, known.id]);
}

/** A tick that is due and was not taken yet survives the change: it runs, or is recorded as missed. */
function nextOfChanged({ nextAt, dueAt }: AppSchedule, changed: Parameters<typeof nextOf>[0]) {
  const now = new Date();
  if (nextAt === null || nextAt > now) return nextOf(changed, now);
  const next = nextOf(changed, new Date(nextAt.getTime() - 1));
  const isLost = dueAt !== null && dueAt <= now && (next.nextAt === null || next.nextAt > now);
  return { ...next, ...(isLost && { lastAt: nextAt, lastCode: 'MISSED', lastRunId: null }) };
}
