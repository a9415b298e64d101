import type { RowDataPacket } from 'mysql2';
import type { AreaPurge } from '../database/areaPurge.ts';
import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

/** After {@link purgeDatabasesOf}: then the server has none of them any more, where there is one. */
export const databasesPurge: AreaPurge = {
  own: ['space_database_accounts', 'space_database_backups', 'space_databases'],
  async finish(database, spaceId) {
    // Their objects go with those of the space.
    await deleteInBatches(database, 'DELETE FROM space_database_backups WHERE space_id = ? LIMIT ?', [spaceId]);
    // What a server has that is not configured now stays known: it is removed when there is one again.
    await deleteInBatches(
      database,
      'DELETE FROM space_databases WHERE space_id = ? AND (due_at IS NULL OR is_made = 0) LIMIT ?',
      [spaceId],
    );
    await deleteInBatches(
      database,
      `DELETE FROM space_database_accounts
        WHERE space_id = ? AND database_id NOT IN (SELECT id FROM space_databases WHERE space_id = ?) LIMIT ?`,
      [spaceId, spaceId],
    );
  },
};

/** Has the databases of a deleted space removed, and forgets what it called them. Returns those that may be there. */
export async function purgeDatabasesOf(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
): Promise<{ id: string; spaceId: string }[]> {
  const now = new Date();
  await pool.query(
    `UPDATE space_databases
        SET state = 'purged', name = '', live_name = NULL, version = version + 1, due_at = ?, purge_at = ?
      WHERE space_id = ? AND state <> 'purged'`,
    [now, now, spaceId],
  );
  const sql = 'SELECT id, space_id AS spaceId FROM space_databases WHERE space_id = ? AND due_at IS NOT NULL LIMIT 200';
  const [rows] = await pool.query<RowDataPacket[]>(sql, [spaceId]);
  return rows as unknown as { id: string; spaceId: string }[];
}
