import type { RowDataPacket } from 'mysql2/promise';
import { deleteByIds } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';
import type { RecordingStatus } from './recording.ts';

export type OpenDesktop = Waiting & { spaceId: string; status: string };

/** Sessions that have not ended. Each should have a running workflow. */
export function openDesktops(database: Pick<Database, 'pool'>, page: OldestFirst<OpenDesktop>): Promise<OpenDesktop[]> {
  const where = "status IN ('starting', 'running', 'ending')";
  const columns = ['space_id AS spaceId', 'status'];
  return oldestFirst(database, { table: 'desktop_sessions', columns, where, time: 'status_at' }, page);
}

export type OpenRecording = Waiting & { spaceId: string; status: RecordingStatus };

/** Recordings that are not settled. Each should have a running workflow. */
export function openRecordings(
  database: Pick<Database, 'pool'>,
  page: OldestFirst<OpenRecording>,
): Promise<OpenRecording[]> {
  const columns = ['space_id AS spaceId', 'status'];
  const where = 'settled_at IS NULL';
  return oldestFirst(database, { table: 'desktop_recordings', columns, where, time: 'status_at' }, page);
}

const forgottenAtOnce = 500;

/** Deletes the rows and links of sessions that ended before this and have no recordings. Returns how many. */
export async function forgetOldDesktops(
  { pool }: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  for (let count = 0; ; onBatch()) {
    const [rows] = await pool.query<RowDataPacket[]>(
      `SELECT id FROM desktop_sessions s WHERE ended_at < ? AND status = 'ended'
          AND NOT EXISTS (SELECT 1 FROM desktop_recordings r WHERE r.session_id = s.id)
        ORDER BY ended_at LIMIT ?`,
      [before, forgottenAtOnce],
    );
    const ids = rows.map((row) => String(row.id));
    if (ids.length === 0) return count;
    await pool.query('DELETE FROM desktop_links WHERE session_id IN (?)', [ids]);
    await pool.query('DELETE FROM desktop_sessions WHERE id IN (?)', [ids]);
    count += ids.length;
    if (ids.length < forgottenAtOnce) return count;
  }
}

/** Deletes the rows of recordings that were settled before this. Returns how many. */
export function forgetOldRecordings(
  database: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  const sql = 'SELECT id FROM desktop_recordings WHERE settled_at < ? ORDER BY settled_at LIMIT ?';
  return deleteByIds(database, 'desktop_recordings', sql, [before], onBatch);
}
