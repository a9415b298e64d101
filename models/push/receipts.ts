import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';
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
  await database.pool.query(
    'INSERT INTO turn_receipts (turn_id, seq) VALUES (?, ?) ON DUPLICATE KEY UPDATE seq = GREATEST(seq, VALUES(seq))',
    [turn.id, seq],
  );
}

/** Whether a device has received the turn up to this chunk. */
export async function wasSeen(database: Pick<Database, 'pool'>, turnId: string, seq: number): Promise<boolean> {
  const [rows] = await database.pool.query<RowDataPacket[]>('SELECT seq FROM turn_receipts WHERE turn_id = ?', [
    turnId,
  ]);
  const row = rows[0] as { seq: number } | undefined;
  return row !== undefined && row.seq >= seq;
}
