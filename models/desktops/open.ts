import { deleteByIds, removeByIds } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { RecordingStatus } from './recording.ts';

/** Sessions that have not ended: each has a running workflow, or should have. */
export const openDesktops = waitingIn<Waiting & { spaceId: string; status: string }>({
  table: 'desktop_sessions',
  columns: ['space_id', 'status'],
  where: "status IN ('starting', 'running', 'ending')",
  time: 'status_at',
});

/** Recordings for which something is still to be done: each has a running workflow, or should have. */
export const openRecordings = waitingIn<Waiting & { spaceId: string; status: RecordingStatus }>({
  table: 'desktop_recordings',
  columns: ['space_id', 'status'],
  where: 'settled_at IS NULL',
  time: 'status_at',
});

/**
 * Deletes sessions that ended before this time, with their links, unless recordings of them remain. Returns how many.
 */
export function forgetOldDesktops(
  { pool }: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  const select = `SELECT id FROM desktop_sessions s WHERE ended_at < ? AND status = 'ended'
      AND NOT EXISTS (SELECT 1 FROM desktop_recordings r WHERE r.session_id = s.id)
    ORDER BY ended_at LIMIT ?`;
  const remove = async (ids: readonly string[]) => {
    await execute(pool, 'DELETE FROM desktop_links WHERE session_id IN (?)', [ids]);
    await execute(pool, 'DELETE FROM desktop_sessions WHERE id IN (?)', [ids]);
    return ids.length;
  };
  return removeByIds({ pool }, { select, values: [before], remove }, onBatch);
}

/** Deletes recordings that were settled before this time. Returns how many. */
export function forgetOldRecordings(
  database: Pick<Database, 'pool'>,
  before: Date,
  onBatch: () => void,
): Promise<number> {
  const select = 'SELECT id FROM desktop_recordings WHERE settled_at < ? ORDER BY settled_at LIMIT ?';
  return deleteByIds(database, 'desktop_recordings', select, [before], onBatch);
}
