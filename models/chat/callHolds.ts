import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

const milliseconds = 'INTERVAL ? * 1000 MICROSECOND';
/** The time this many milliseconds from now, by the database's clock, which all processes share. */
export const holdEnd = `UTC_TIMESTAMP(3) + ${milliseconds}`;

/**
 * Which of these turns have a head start under way: a process takes their first step outside an activity. Head starts
 * that ended less than `graceMs` ago count too.
 */
export async function findHeld({ pool }: Database, turnIds: readonly string[], graceMs: number): Promise<Set<string>> {
  const sql = `SELECT turn_id FROM model_calls
      WHERE turn_id IN (?) AND step = 0 AND status = 'started' AND held_until > UTC_TIMESTAMP(3) - ${milliseconds}`;
  const rows = await select<{ turnId: string }>(pool, sql, [turnIds, Math.ceil(graceMs)]);
  return new Set(rows.map(({ turnId }) => turnId));
}

/**
 * Extends the head starts of these turns to `holdMs` from now, unless another attempt has taken the step. Skips locked
 * rows: such a step is just ending, perhaps behind the lock of a busy space, and must not delay the others.
 */
export async function keepHeld(database: Database, turnIds: readonly string[], holdMs: number): Promise<void> {
  await transaction(database, async (tx) => {
    const rows = await select<{ turnId: string }>(
      tx,
      `SELECT turn_id FROM model_calls
        WHERE turn_id IN (?) AND step = 0 AND status = 'started' AND held_until IS NOT NULL
        FOR UPDATE SKIP LOCKED`,
      [turnIds],
    );
    if (rows.length === 0) return;
    await execute(tx, `UPDATE model_calls SET held_until = ${holdEnd} WHERE turn_id IN (?) AND step = 0`, [
      holdMs,
      rows.map(({ turnId }) => turnId),
    ]);
  });
}

/**
 * Gives up a head start, so that the process that takes the step over need not wait. `leftAs` is the step's result, for
 * that process.
 */
export async function release({ pool }: Database, turnId: string, leftAs?: object): Promise<void> {
  const sql = `UPDATE model_calls SET held_until = NULL, left_as = ?
      WHERE turn_id = ? AND step = 0 AND attempts = 1 AND status = 'started'`;
  await execute(pool, sql, [leftAs === undefined ? null : JSON.stringify(leftAs), turnId]);
}

/** Claims the result that a head start left. Only one caller gets true. */
export async function takeLeft({ pool }: Database, turnId: string): Promise<boolean> {
  const sql = 'UPDATE model_calls SET left_as = NULL WHERE turn_id = ? AND step = 0 AND left_as IS NOT NULL';
  const { affectedRows } = await execute(pool, sql, [turnId]);
  return affectedRows === 1;
}
