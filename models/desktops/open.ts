import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

export type OpenDesktop = Waiting & { spaceId: string; status: string };

/** Sessions that have not ended: each has a running workflow, or should have. */
export function openDesktops(database: Pick<Database, 'pool'>, page: OldestFirst<OpenDesktop>): Promise<OpenDesktop[]> {
  const where = "status IN ('starting', 'running', 'ending')";
  const columns = ['space_id AS spaceId', 'status'];
  return oldestFirst(database, { table: 'desktop_sessions', columns, where, time: 'status_at' }, page);
}

const forgottenAtOnce = 500;

/** Forgets sessions that ended before this, with their links, where no recording is left of them. Returns how many. */
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
