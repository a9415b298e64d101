import { removeByIds } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** Sessions that have not ended: each has a running workflow, or should have. */
export const openBrowsers = waitingIn<Waiting & { spaceId: string; status: string }>({
  table: 'browser_sessions',
  columns: ['space_id', 'status'],
  where: "status IN ('starting', 'running', 'ending', 'saving')",
  time: 'status_at',
});

/** Deletes sessions that ended before this time, with the records of their downloads. Returns how many. */
export function forgetOldBrowsers(
  { pool }: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  const select = "SELECT id FROM browser_sessions WHERE ended_at < ? AND status = 'ended' ORDER BY ended_at LIMIT ?";
  const remove = async (ids: readonly string[]) => {
    await execute(pool, 'DELETE FROM browser_downloads WHERE session_id IN (?)', [ids]);
    await execute(pool, 'DELETE FROM browser_links WHERE session_id IN (?)', [ids]);
    // Downloads that are left in the home are ordinary files from now on.
    await execute(pool, 'DELETE FROM browser_folders WHERE owner_id IN (?) AND remove_at IS NULL', [ids]);
    await execute(pool, 'DELETE FROM browser_sessions WHERE id IN (?)', [ids]);
    return ids.length;
  };
  return removeByIds({ pool }, { select, values: [before], remove }, onBatch);
}
