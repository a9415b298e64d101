import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';
import type { RecordingStatus } from './recording.ts';

export type OpenRecording = Waiting & { spaceId: string; status: RecordingStatus };

/** Recordings for which something is still to be done: each has a running workflow, or should have. */
export function openRecordings(
  database: Pick<Database, 'pool'>,
  page: OldestFirst<OpenRecording>,
): Promise<OpenRecording[]> {
  const columns = ['space_id AS spaceId', 'status'];
  const where = 'settled_at IS NULL';
  return oldestFirst(database, { table: 'desktop_recordings', columns, where, time: 'status_at' }, page);
}

const forgottenAtOnce = 500;

/** Forgets recordings that were settled before this. Returns how many there were. */
export async function forgetOldRecordings(
  { pool }: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  for (let count = 0; ; onBatch()) {
    const [rows] = await pool.query<RowDataPacket[]>(
      'SELECT id FROM desktop_recordings WHERE settled_at < ? ORDER BY settled_at LIMIT ?',
      [before, forgottenAtOnce],
    );
    const ids = rows.map((row) => String(row.id));
    if (ids.length > 0) await pool.query('DELETE FROM desktop_recordings WHERE id IN (?)', [ids]);
    count += ids.length;
    if (ids.length < forgottenAtOnce) return count;
  }
}
