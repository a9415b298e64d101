import { removeByIds } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** Databases that may differ between the server and their rows, or whose next change by time is due. */
export const dueDatabases = waitingIn<Waiting & { spaceId: string }>({
  table: 'space_databases',
  index: 'space_databases_due',
  columns: ['space_id'],
  where: 'due_at IS NOT NULL',
  time: 'due_at',
});

/** What the server should have of a database, according to the rows. */
export interface KnownDatabase {
  id: string;
  serverName: string;
  isThere: boolean;
  /** True if the row has changed and the server has not followed yet. */
  isUnderWay: boolean;
  users: { name: string; isLocked: boolean }[];
}

const rowsAtOnce = 500;

/** All databases, page by page. */
export async function* knownDatabases({ pool }: Pick<Database, 'pool'>): AsyncGenerator<KnownDatabase[]> {
  for (let after = ''; ; ) {
    const sql = `SELECT id, server_name, state, due_at FROM space_databases FORCE INDEX (PRIMARY)
        WHERE id > ? ORDER BY id LIMIT ${rowsAtOnce}`;
    const rows = await select(pool, sql, [after]);
    if (rows.length === 0) return;
    after = String(rows.at(-1)?.id);
    const accounts = await select(
      pool,
      'SELECT database_id, server_user, revoked_at FROM space_database_accounts WHERE database_id IN (?)',
      [rows.map(({ id }) => id)],
    );
    const usersOf = Map.groupBy(accounts, ({ databaseId }) => String(databaseId));
    const now = new Date();
    yield rows.map(({ id, serverName, state, dueAt }) => ({
      id: String(id),
      serverName: String(serverName),
      isThere: state !== 'purged',
      isUnderWay: dueAt !== null && dueAt <= now,
      users: (usersOf.get(String(id)) ?? []).map(({ serverUser, revokedAt }) => ({
        name: String(serverUser),
        isLocked: state === 'deleted' || revokedAt !== null,
      })),
    }));
  }
}

/** Marks a database for a new alignment. */
export async function markDue({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(pool, `UPDATE space_databases SET due_at = ?, version = version + 1 WHERE id = ?`, [new Date(), id]);
}

/** Deletes the rows of databases purged before a time. Until then, one that comes back is found and removed. */
export function forgetPurged(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const select = "SELECT id FROM space_databases WHERE state = 'purged' AND due_at IS NULL AND purge_at < ? LIMIT ?";
  const remove = (ids: readonly string[]) =>
    transaction(database, async (tx) => {
      await execute(tx, 'DELETE FROM space_database_accounts WHERE database_id IN (?)', [ids]);
      await execute(tx, "DELETE FROM space_databases WHERE id IN (?) AND state = 'purged'", [ids]);
      return ids.length;
    });
  return removeByIds(database, { select, values: [before], remove }, onBatch);
}
