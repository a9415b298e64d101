import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import type { Computer } from './computer.ts';

/** Use is recorded at most this often: far below the shortest idle time. */
const notedEveryMs = 10_000;

/**
 * Records a use of a running computer, so that it does not stop as idle. Returns false if it does not run any more, or
 * is about to stop or pause: then wake it first. Call this before the use begins.
 */
export async function markUsed(
  { pool }: Pick<Database, 'pool'>,
  { id, generation, usedAt }: Pick<Computer, 'id' | 'generation' | 'usedAt'>,
): Promise<boolean> {
  const now = new Date();
  if (usedAt !== null && now.getTime() - usedAt.getTime() < notedEveryMs) return true;
  const { affectedRows } = await execute(
    pool,
    "UPDATE computers SET used_at = ? WHERE id = ? AND generation = ? AND status = 'running' AND wish IS NULL AND deleted_at IS NULL",
    [now, id, generation],
  );
  return affectedRows > 0;
}
