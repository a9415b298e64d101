import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database.ts';

/** The end of a hold of so many milliseconds. Everybody goes by the database's clock. */
export const holdEnd = 'UTC_TIMESTAMP(3) + INTERVAL ? * 1000 MICROSECOND';

/** Those of the turns whose first step is held: a process that no activity vouches for takes it, as far as is known. */
export async function findHeld({ pool }: Database, turnIds: readonly string[]): Promise<Set<string>> {
  const [rows] = await pool.query<(RowDataPacket & { turnId: string })[]>(
    `SELECT turn_id AS turnId FROM model_calls
      WHERE turn_id IN (?) AND step = 0 AND status = 'started' AND held_until > UTC_TIMESTAMP(3)`,
    [turnIds],
  );
  return new Set(rows.map(({ turnId }) => turnId));
}

/** Holds the first steps of these turns for `holdMs` from now, where nobody else has taken them. */
export async function keepHeld({ pool }: Database, turnIds: readonly string[], holdMs: number): Promise<void> {
  await pool.query(
    `UPDATE model_calls SET held_until = ${holdEnd}
      WHERE turn_id IN (?) AND step = 0 AND status = 'started' AND held_until IS NOT NULL`,
    [holdMs, turnIds],
  );
}

/** Lets go of a turn's first step: who is to take it need not wait. */
export async function release({ pool }: Database, turnId: string): Promise<void> {
  await pool.query('UPDATE model_calls SET held_until = NULL WHERE turn_id = ? AND step = 0 AND attempts = 1', [
    turnId,
  ]);
}
