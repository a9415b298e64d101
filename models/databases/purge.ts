import type { RowDataPacket } from 'mysql2';
import type { AreaPurge } from '../database/areaPurge.ts';
import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

/** Runs after {@link purgeDatabasesOf}. Then the server, if one is configured, no longer has any of them. */
export const databasesPurge: AreaPurge = {
  own: ['space_database_accounts', 'space_database_backups', 'space_databases'],
  async finish(database, spaceId) {
    // The objects of the backups go with those of the space.
    await deleteInBatches(database, 'DELETE FROM space_database_backups WHERE space_id = ? LIMIT ?', [spaceId]);
    // Databases on a server that is not configured now keep their rows, and are removed once it is configured again.
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

/** Marks a deleted space's databases as purged, and clears their names. Returns those that may still exist. */
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
