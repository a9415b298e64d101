import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { lockDatabase } from './spaceDatabase.ts';

export interface DatabaseOnServer {
  id: string;
  serverName: string;
  /** A deleted database refuses all connections, even Atrium's. */
  isLiving: boolean;
}

/** The databases that the server has, or had when the rows were written. */
export async function databasesOnServer({ pool }: Pick<Database, 'pool'>): Promise<DatabaseOnServer[]> {
  const sql = `SELECT id, server_name, state = 'living' AS isLiving FROM space_databases
      WHERE state IN ('living', 'deleted') AND is_made = 1 ORDER BY state, id`;
  const rows = await select(pool, sql);
  return rows.map(({ id, serverName, isLiving }) => ({ id, serverName, isLiving: Boolean(isLiving) }));
}

/** Records that the server lost the database, before the caller makes and fills it again. */
export async function noteLost(database: Database, id: string): Promise<void> {
  await transaction(database, (tx) =>
    execute(tx, 'UPDATE space_databases SET is_made = 0, restores = NULL WHERE id = ?', [id]),
  );
}

/** True if the caller has not filled it yet. */
export async function isToBeFilled({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = "SELECT 1 FROM space_databases WHERE id = ? AND state = 'living' AND is_made = 0 AND restores IS NULL";
  const rows = await select(pool, sql, [id]);
  return rows.length > 0;
}

/**
 * After the server lost a database: has it made again from its newest own backup, or empty if there is none. A deleted
 * database is made when it is restored.
 */
export async function makeFromOwnBackup(database: Database, id: string): Promise<void> {
  await transaction(database, async (tx) => {
    await lockDatabase(tx, id);
    const newest =
      "SELECT id FROM space_database_backups WHERE database_id = ? AND state = 'kept' ORDER BY id DESC LIMIT 1";
    const [backup] = await select<{ id: string }>(tx, newest, [id]);
    const change = { restores: backup?.id ?? null, isMade: 0, dueAt: new Date() };
    await execute(tx, 'UPDATE space_databases SET ?, version = version + 1 WHERE id = ?', [change, id]);
  });
}
