import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database/database.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

export type OpenBrowser = Waiting & { spaceId: string; status: string };

/** Sessions that have not ended: each has a running workflow, or should have. */
export function openBrowsers(database: Pick<Database, 'pool'>, page: OldestFirst<OpenBrowser>): Promise<OpenBrowser[]> {
  const where = "status IN ('starting', 'running', 'ending', 'saving')";
  const columns = ['space_id AS spaceId', 'status'];
  return oldestFirst(database, { table: 'browser_sessions', columns, where, time: 'status_at' }, page);
}

const forgottenAtOnce = 500;

/** Forgets sessions that ended before this, with what is known of their downloads. Returns how many there were. */
export async function forgetOldBrowsers(
  { pool }: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  for (let count = 0; ; onBatch()) {
    const [rows] = await pool.query<RowDataPacket[]>(
      "SELECT id FROM browser_sessions WHERE ended_at < ? AND status = 'ended' ORDER BY ended_at LIMIT ?",
      [before, forgottenAtOnce],
    );
    const ids = rows.map((row) => String(row.id));
    if (ids.length === 0) return count;
    await pool.query('DELETE FROM browser_downloads WHERE session_id IN (?)', [ids]);
    await pool.query('DELETE FROM browser_links WHERE session_id IN (?)', [ids]);
    // What is left of their downloads is from now on a file like any other in the home.
    await pool.query('DELETE FROM browser_folders WHERE owner_id IN (?) AND remove_at IS NULL', [ids]);
    await pool.query('DELETE FROM browser_sessions WHERE id IN (?)', [ids]);
    count += ids.length;
    if (ids.length < forgottenAtOnce) return count;
  }
}
