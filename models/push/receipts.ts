import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { hasDevices } from './devices.ts';

/**
 * Notes that a device of the turn's owner has received the turn up to where it rests. Only done for users with push
 * subscriptions, since only they need it.
 */
export async function noteSeen(
  database: Pick<Database, 'pool'>,
  turn: { id: string; userId: string },
  seq: number,
): Promise<void> {
  if (!(await hasDevices(database, turn.userId))) return;
  await execute(
    database.pool,
    'INSERT INTO turn_receipts (turn_id, seq) VALUES (?, ?) ON DUPLICATE KEY UPDATE seq = GREATEST(seq, VALUES(seq))',
    [turn.id, seq],
  );
}

/** Whether a device has received the turn up to this chunk. */
export async function wasSeen(database: Pick<Database, 'pool'>, turnId: string, seq: number): Promise<boolean> {
  const [row] = await select<{ seq: number }>(database.pool, 'SELECT seq FROM turn_receipts WHERE turn_id = ?', [
    turnId,
  ]);
  return row !== undefined && row.seq >= seq;
}
