import { createHash } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { calendarOf, nextTick } from '../../base/schedule.ts';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { everyWaiting, type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** A schedule component of an app, and its progress. */
export interface AppSchedule {
  id: string;
  appId: string;
  spaceId: string;
  component: string;
  cron: string;
  timeZone: string;
  jitterSeconds: number;
  enabled: boolean;
  /** Null if it is not paused. */
  pause: { code: string; detail: string; at: Date } | null;
  /** The number of consecutive failed runs. */
  failures: number;
  /** The next tick, and when its run begins (with jitter). Null while it is paused. */
  nextAt: Date | null;
  dueAt: Date | null;
  /** The last tick, with its run or the code that says why it had none. Null before the first. */
  last: { at: Date; runId: string | null; code: string | null } | null;
  /** When it disappeared from the manifest. Null if it is there. */
  goneAt: Date | null;
  /** The version of this row, which the schedule in Temporal must match. */
  version: number;
}

/** The columns of a schedule besides its id. */
export const scheduleColumns = `app_id, space_id, component, cron, time_zone, jitter_seconds, enabled, pause_code,
  pause_detail, paused_at, failures, next_at, due_at, last_at, last_code, last_run_id, gone_at, version`;

export function scheduleOf(row: object): AppSchedule {
  const { enabled, pauseCode, pauseDetail, pausedAt, lastAt, lastCode, lastRunId, ...rest } = row as Omit<
    AppSchedule,
    'enabled' | 'pause' | 'last'
  > & {
    enabled: number;
    pauseCode: string | null;
    pauseDetail: string | null;
    pausedAt: Date | null;
    lastAt: Date | null;
    lastCode: string | null;
    lastRunId: string | null;
  };
  const isPaused = pauseCode !== null && pausedAt !== null;
  return {
    ...rest,
    enabled: enabled === 1,
    pause: isPaused ? { code: pauseCode, detail: pauseDetail ?? '', at: pausedAt } : null,
    last: lastAt === null ? null : { at: lastAt, runId: lastRunId, code: lastCode },
  };
}

/** An app's schedules, ordered by component name. */
export async function schedulesOf({ pool }: Pick<Database, 'pool'>, appId: string): Promise<AppSchedule[]> {
  const sql = `SELECT id, ${scheduleColumns} FROM app_schedules WHERE app_id = ? AND gone_at IS NULL
    ORDER BY component`;
  const rows = await select(pool, sql, [appId]);
  return rows.map(scheduleOf);
}

export async function findSchedule({ pool }: Pick<Database, 'pool'>, id: string): Promise<AppSchedule | undefined> {
  const [row] = await select(pool, `SELECT id, ${scheduleColumns} FROM app_schedules WHERE id = ?`, [id]);
  return row && scheduleOf(row);
}

export async function lockSchedule(
  tx: Transaction,
  { appId, component }: { appId: string; component: string },
): Promise<AppSchedule | undefined> {
  const sql = `SELECT id, ${scheduleColumns} FROM app_schedules
    WHERE app_id = ? AND component = ? AND gone_at IS NULL FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [appId, component]);
  return row && scheduleOf(row);
}

/** The first tick after a time, and that tick with the schedule's jitter. */
export function nextOf(
  schedule: Pick<AppSchedule, 'id' | 'cron' | 'timeZone' | 'jitterSeconds'>,
  after: Date,
): { nextAt: Date | null; dueAt: Date | null } {
  return dueWith(schedule, nextTick(schedule, after));
}

export function dueWith(schedule: Pick<AppSchedule, 'id' | 'jitterSeconds'>, next: Date | undefined) {
  if (next === undefined) return { nextAt: null, dueAt: null };
  return { nextAt: next, dueAt: new Date(next.getTime() + jitterMsOf(schedule)) };
}

/** Constant for each schedule, so that its runs are as far apart as its ticks. */
export function jitterMsOf({ id, jitterSeconds }: Pick<AppSchedule, 'id' | 'jitterSeconds'>): number {
  const number = createHash('sha256').update(id).digest().readUInt32BE(0);
  return (number % (jitterSeconds + 1)) * 1_000;
}

export interface Pause {
  code: 'PAUSED' | 'FAILED_REPEATEDLY';
  detail: string;
}

/** Pauses a locked schedule. A run that has begun, or waits, goes on. */
export async function pauseIn(tx: Transaction, { id, version }: AppSchedule, { code, detail }: Pause): Promise<void> {
  const pause = { pauseCode: code, pauseDetail: detail.slice(0, 500), pausedAt: new Date() };
  const row = { enabled: 0, nextAt: null, dueAt: null, version: version + 1, ...pause };
  await execute(tx, 'UPDATE app_schedules SET ? WHERE id = ?', [row, id]);
}

export type DueSchedule = Waiting & { spaceId: string };

const due = { table: 'app_schedules', index: 'app_schedules_due', where: 'due_at IS NOT NULL', time: 'due_at' };

/** Schedules whose tick has come. */
export const dueSchedules = waitingIn<DueSchedule>({ ...due, columns: ['space_id'] });

/** Every schedule that waits for a tick, page by page. Each should exist in Temporal. */
export async function* waitingSchedules(database: Pick<Database, 'pool'>): AsyncGenerator<AppSchedule[]> {
  for await (const page of everyWaiting(database, { ...due, columns: [scheduleColumns] })) yield page.map(scheduleOf);
}

/** The launcher's input for the Temporal schedule. `when` is null if it waits for no tick. */
export function asCalendar(schedule: AppSchedule) {
  const { id, spaceId, version, dueAt } = schedule;
  return { id, spaceId, version, when: dueAt === null ? null : calendarOf(schedule) };
}

const mostFailures = 5;

/** Counts failures, in the transaction that ends a run of a schedule. `mostFailures` in a row pause the schedule. */
export async function countEnd(
  tx: Transaction,
  run: { appId: string; component: string; status: string; errorDetail: string | null },
): Promise<void> {
  const schedule = await lockSchedule(tx, run);
  if (schedule === undefined || run.status === 'cancelled') return;
  const failures = run.status === 'succeeded' ? 0 : schedule.failures + 1;
  if (failures === schedule.failures) return;
  await execute(tx, 'UPDATE app_schedules SET failures = ? WHERE id = ?', [failures, schedule.id]);
  if (failures < mostFailures || !schedule.enabled) return;
  const detail = `The schedule was paused after ${failures} failures in a row. ${run.errorDetail ?? ''}`.trim();
  await pauseIn(tx, schedule, { code: 'FAILED_REPEATEDLY', detail });
}

/** Moves every due schedule to its first tick after `now`, without runs for the ticks before. */
export async function passMissedTicks({ pool }: Pick<Database, 'pool'>, now: Date): Promise<number> {
  const sql = `SELECT id, ${scheduleColumns} FROM app_schedules WHERE due_at <= ?`;
  const rows = await select(pool, sql, [now]);
  for (const schedule of rows.map(scheduleOf)) {
    await execute(pool, 'UPDATE app_schedules SET ? WHERE id = ?', [nextOf(schedule, now), schedule.id]);
  }
  return rows.length;
}
