import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { calendarOf, nextTick, type Schedule } from '../../base/schedule.ts';
import type { FileReference } from '../chat/message.ts';
import type { TurnMode } from '../chat/turn.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { everyWaiting, type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** What happens to a run while the previous one has not ended. */
export type Overlap = 'skip' | 'queue' | 'interrupt';

/** Starts chat turns by itself, in the name of its author. */
export interface Automation extends Authority {
  id: string;
  spaceId: string;
  userId: string;
  /** The turn whose agent made it. Null if a person did. */
  madeByTurnId: string | null;
  threadId: string;
  name: string;
  prompt: string;
  /** Null: the space's default at the time of the run. */
  modelId: string | null;
  effort: string | null;
  mode: TurnMode;
  files: FileReference[];
  schedule: Schedule | null;
  overlap: Overlap;
  enabled: boolean;
  /** Why it paused itself. */
  pause: { code: string; detail: string; at: Date } | null;
  /** The number of failed runs in a row, up to the last one. */
  failures: number;
  nextRunAt: Date | null;
  lastRunAt: Date | null;
  costMicro: number;
  version: number;
  hasSecret: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** The columns of an automation besides its id. */
const columns = `space_id, user_id, made_by_turn_id, thread_id, name, prompt, model_id, effort, mode, files, cron,
  time_zone, run_at, overlap, enabled, pause_code, pause_detail, paused_at, failures, next_run_at, last_run_at,
  cost_micro, version, scopes, api_key_id, secret IS NOT NULL AS hasSecret, created_at, updated_at`;

/** A person's automations in a space, oldest first. */
export async function listAutomations(
  database: Pick<Database, 'pool'>,
  { spaceId, userId }: { spaceId: string; userId: string },
  page: PageRequest,
): Promise<Page<Automation>> {
  const sql = `SELECT id, ${columns} FROM automations WHERE space_id = ? AND user_id = ? AND deleted_at IS NULL`;
  return readPage(database, page, { sql, values: [spaceId, userId], by: 'id', order: 'asc', read });
}

/** Throws 404, also for another user's automation. */
export async function getAutomation(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, userId, id }: { spaceId: string; userId: string; id: string },
): Promise<Automation> {
  const sql = `SELECT id, ${columns} FROM automations WHERE id = ? AND space_id = ? AND user_id = ? AND deleted_at IS NULL`;
  const rows = await select(pool, sql, [id, spaceId, userId]);
  if (rows[0] === undefined) throw notFound('automation');
  return read(rows[0]);
}

/** The automation of any user. Undefined if there is none. */
export async function findAutomation({ pool }: Pick<Database, 'pool'>, id: string): Promise<Automation | undefined> {
  const [row] = await select(pool, `SELECT id, ${columns} FROM automations WHERE id = ? AND deleted_at IS NULL`, [id]);
  return row && read(row);
}

/** Locks the automation: only one caller at a time may begin a run or move the schedule on. */
export async function lockAutomation(tx: Transaction, id: string): Promise<Automation | undefined> {
  const [row] = await select<Record<string, unknown>>(
    tx,
    `SELECT id, ${columns} FROM automations WHERE id = ? AND deleted_at IS NULL FOR UPDATE`,
    [id],
  );
  return row && read(row);
}

/** Stops the automation from running by itself, with a reason for its owner. */
export async function pauseAutomation(
  tx: Transaction,
  { id, version }: Pick<Automation, 'id' | 'version'>,
  why: { code: string; detail: string },
): Promise<void> {
  const pause = { pauseCode: why.code, pauseDetail: why.detail.slice(0, 500), pausedAt: new Date() };
  const row = { enabled: 0, nextRunAt: null, version: version + 1, ...pause };
  await execute(tx, 'UPDATE automations SET ? WHERE id = ?', [row, id]);
}

export type DueAutomation = Waiting & Pick<Automation, 'spaceId'>;

const due = { table: 'automations', index: 'automations_due', where: 'next_run_at IS NOT NULL', time: 'next_run_at' };

export const dueAutomations = waitingIn<DueAutomation>({ ...due, columns: ['space_id'] });

/** All automations that wait for a tick, page by page. Each should have a schedule in Temporal. */
export async function* scheduledAutomations(database: Pick<Database, 'pool'>): AsyncGenerator<Automation[]> {
  for await (const page of everyWaiting(database, { ...due, columns: [columns] })) {
    yield page.map((row) => read({ ...row }));
  }
}

/** The launcher's input for a schedule. `when` is null if the automation waits for no tick. */
export function asScheduled({ id, spaceId, version, nextRunAt, schedule }: Automation) {
  return { id, spaceId, version, when: nextRunAt === null ? null : calendarOf(schedule) };
}

export function scheduleColumns(schedule: Schedule | null) {
  if (schedule === null) return { cron: null, timeZone: null, runAt: null };
  if ('at' in schedule) return { cron: null, timeZone: null, runAt: schedule.at };
  return { cron: schedule.cron, timeZone: schedule.timeZone, runAt: null };
}

interface Row {
  cron: string | null;
  timeZone: string | null;
  runAt: Date | null;
  files: string;
  scopes: string | null;
  pauseCode: string | null;
  pauseDetail: string | null;
  pausedAt: Date | null;
  enabled: number;
  hasSecret: number;
  costMicro: number | string;
}

function read(found: Record<string, unknown>): Automation {
  const row = found as unknown as Row & Omit<Automation, keyof Row>;
  const { cron, timeZone, runAt, files, scopes, pauseCode, pauseDetail, pausedAt, ...rest } = row;
  const clock = cron === null || timeZone === null ? null : { cron, timeZone };
  return {
    ...rest,
    files: JSON.parse(files) as FileReference[],
    scopes: scopes === null ? null : (JSON.parse(scopes) as string[]),
    schedule: clock ?? (runAt === null ? null : { at: runAt }),
    pause:
      pauseCode === null || pausedAt === null ? null : { code: pauseCode, detail: pauseDetail ?? '', at: pausedAt },
    enabled: Boolean(row.enabled),
    hasSecret: Boolean(row.hasSecret),
    costMicro: Number(row.costMicro),
  };
}

/** Moves every schedule on to its first tick after `now`, without runs for missed ticks. */
export async function passMissedTicks(database: Database, now: Date): Promise<number> {
  const sql = 'SELECT id FROM automations WHERE next_run_at <= ?';
  const rows = await select(database.pool, sql, [now]);
  for (const { id } of rows) {
    await transaction(database, async (tx) => {
      const automation = await lockAutomation(tx, id);
      const next = automation?.schedule == null ? undefined : nextTick(automation.schedule, now);
      await execute(tx, 'UPDATE automations SET next_run_at = ? WHERE id = ?', [next ?? null, id]);
    });
  }
  return rows.length;
}
