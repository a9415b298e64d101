import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** Has the databases of a deleted space removed, and forgets what it called them. Returns those that may be there. */
export async function purgeDatabasesOf(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
): Promise<{ id: string; spaceId: string }[]> {
  const now = new Date();
  await execute(
    pool,
    `UPDATE space_databases
        SET state = 'purged', name = '', live_name = NULL, version = version + 1, due_at = ?, purge_at = ?
      WHERE space_id = ? AND state <> 'purged'`,
    [now, now, spaceId],
  );
  const sql = 'SELECT id, space_id FROM space_databases WHERE space_id = ? AND due_at IS NOT NULL LIMIT 200';
  return select<{ id: string; spaceId: string }>(pool, sql, [spaceId]);
}
