import type { RowDataPacket } from 'mysql2';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

export type DueDatabase = Waiting & { spaceId: string };

/** Databases that the server may have otherwise than their rows, since before a time. */
export function dueDatabases(database: Pick<Database, 'pool'>, page: OldestFirst<DueDatabase>): Promise<DueDatabase[]> {
  return oldestFirst(
    database,
    {
      table: 'space_databases',
      index: 'space_databases_due',
      columns: ['space_id AS spaceId'],
      where: 'due_at IS NOT NULL',
      time: 'due_at',
    },
    page,
  );
}

/** How the rows have what the server may have. */
export interface KnownDatabase {
  id: string;
  serverName: string;
  isThere: boolean;
  /** Whether its row is ahead of the server. */
  isUnderWay: boolean;
  users: { name: string; isLocked: boolean }[];
}

const rowsAtOnce = 500;

/** Every database, a page at a time. */
export async function* knownDatabases({ pool }: Pick<Database, 'pool'>): AsyncGenerator<KnownDatabase[]> {
  for (let after = ''; ; ) {
    const [rows] = await pool.query<RowDataPacket[]>(
      `SELECT id, server_name AS serverName, state, due_at AS dueAt FROM space_databases FORCE INDEX (PRIMARY)
        WHERE id > ? ORDER BY id LIMIT ${rowsAtOnce}`,
      [after],
    );
    if (rows.length === 0) return;
    after = String(rows.at(-1)?.id);
    const [accounts] = await pool.query<RowDataPacket[]>(
      `SELECT database_id AS databaseId, server_user AS serverUser, revoked_at AS revokedAt
        FROM space_database_accounts WHERE database_id IN (?)`,
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

/** Has a database looked at again. */
export async function markDue({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await pool.query(`UPDATE space_databases SET due_at = ?, version = version + 1 WHERE id = ?`, [new Date(), id]);
}

/** Forgets what has been gone for a while: until then, whatever brings it back is found and removed. */
export async function forgetPurged(database: Database, before: Date, onBatch: () => void): Promise<number> {
  for (let count = 0; ; onBatch()) {
    const sql = `SELECT id FROM space_databases WHERE state = 'purged' AND due_at IS NULL AND purge_at < ? LIMIT ${rowsAtOnce}`;
    const [rows] = await database.pool.query<RowDataPacket[]>(sql, [before]);
    const ids = rows.map(({ id }) => String(id));
    if (ids.length === 0) return count;
    await transaction(database, async (tx) => {
      await execute(tx, 'DELETE FROM space_database_accounts WHERE database_id IN (?)', [ids]);
      await execute(tx, "DELETE FROM space_databases WHERE id IN (?) AND state = 'purged'", [ids]);
    });
    count += ids.length;
  }
}
