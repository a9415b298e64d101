import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import type { Database } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { openPassword } from './accounts.ts';
import type { DatabaseState, SpaceDatabase } from './spaceDatabase.ts';

/** An app that is connected to a database. Callers name it by the id of its item. */
export interface ConnectedApp {
  id: string;
  itemId: string;
}

interface NewConnection {
  database: SpaceDatabase;
  app: ConnectedApp;
  account: { id: string };
  sealed: Buffer;
  serverUser: string;
}

/**
 * Gives an app an account in a locked database. False if the app is connected already. A revoked account is reused with
 * a new password, because its definitions still exist.
 */
export async function connectApp(tx: Transaction, connection: NewConnection): Promise<boolean> {
  const { database, app, account, sealed, serverUser } = connection;
  // The lock serializes connections of an app, which has at most one database.
  const living = await select(tx, 'SELECT id FROM apps WHERE id = ? AND live = 1 FOR UPDATE', [app.id]);
  if (living.length === 0) throw notFound('app');
  const known = await select<{ id: string; databaseId: string; revokedAt: Date | null }>(
    tx,
    `SELECT a.id, a.database_id, a.revoked_at FROM space_database_accounts a
       JOIN space_databases d ON d.id = a.database_id AND d.state <> 'purged' WHERE a.app_id = ?`,
    [app.id],
  );
  const live = known.find(({ revokedAt }) => revokedAt === null);
  if (live?.databaseId === database.id) return false;
  if (live !== undefined) {
    const detail = 'The app is connected to another database. Disconnect it from that one first.';
    throw new DomainError('conflict', 'APP_HAS_DATABASE', detail);
  }
  const former = known.find(({ databaseId }) => databaseId === database.id);
  if (former !== undefined && former.id !== account.id) {
    const detail = 'The connection of the app was changed at the same time. Try again.';
    throw new DomainError('conflict', 'DATABASE_BUSY', detail, { retryAfterSeconds: 1 });
  }
  if (former === undefined) {
    const { id: databaseId, spaceId } = database;
    const row = { id: account.id, databaseId, spaceId, appId: app.id, itemId: app.itemId };
    await insert(tx, 'space_database_accounts', { ...row, serverUser, sealed });
    return true;
  }
  await execute(
    tx,
    `UPDATE space_database_accounts
        SET sealed = ?, previous_sealed = NULL, previous_until = NULL, revoked_at = NULL, password_version = password_version + 1
      WHERE id = ?`,
    [sealed, account.id],
  );
  return true;
}

/** Revokes an app's account. False if it was revoked before. Throws 404. */
export async function disconnectApp(
  tx: Transaction,
  { id }: Pick<SpaceDatabase, 'id'>,
  itemId: string,
): Promise<boolean> {
  const known = await select<{ id: string; revokedAt: Date | null }>(
    tx,
    'SELECT id, revoked_at FROM space_database_accounts WHERE database_id = ? AND item_id = ?',
    [id, itemId],
  );
  if (known.length === 0) throw notFound('connection');
  const live = known.filter(({ revokedAt }) => revokedAt === null).map((account) => account.id);
  if (live.length === 0) return false;
  await execute(tx, 'UPDATE space_database_accounts SET revoked_at = ? WHERE id IN (?)', [new Date(), live]);
  return true;
}

/** The details with which an app's runs connect to its database. */
export interface AppDatabase {
  serverName: string;
  user: string;
  password: string;
}

/** Undefined if the app has no database. Throws 409 `DATABASE_NOT_READY` or `DATABASE_DELETED`. */
export async function databaseOfApp(
  { pool }: Pick<Database, 'pool'>,
  envelope: Envelope,
  appId: string,
): Promise<AppDatabase | undefined> {
  const [row] = await select<
    Omit<AppDatabase, 'password'> & {
      id: string;
      spaceId: string;
      sealed: Buffer;
      isUnderWay: number;
      state: DatabaseState;
    }
  >(
    pool,
    `SELECT a.id, a.space_id, a.server_user AS user, a.sealed, d.server_name,
        a.set_version <> a.password_version AS isUnderWay, d.state
       FROM space_database_accounts a JOIN space_databases d ON d.id = a.database_id AND d.state <> 'purged'
      WHERE a.app_id = ? AND a.revoked_at IS NULL`,
    [appId],
  );
  if (row === undefined) return undefined;
  if (row.state === 'deleted') {
    const detail = 'The database of the app is deleted. Restore it, or disconnect the app.';
    throw new DomainError('conflict', 'DATABASE_DELETED', detail);
  }
  if (row.isUnderWay !== 0) {
    const detail = 'The app is still being connected to its database.';
    throw new DomainError('conflict', 'DATABASE_NOT_READY', detail, { retryAfterSeconds: 1 });
  }
  const { serverName, user } = row;
  return { serverName, user, password: await openPassword(envelope, row, row.sealed) };
}

/** True if an app is connected to a database. */
export async function hasDatabase({ pool }: Pick<Database, 'pool'>, appId: string): Promise<boolean> {
  const sql = 'SELECT 1 FROM space_database_accounts WHERE app_id = ? AND revoked_at IS NULL LIMIT 1';
  const rows = await select(pool, sql, [appId]);
  return rows.length > 0;
}

/** True if an app of this space is connected to the database. Then the space's computers may reach it. */
export async function isConnected(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, serverName }: { spaceId: string; serverName: string },
): Promise<boolean> {
  const rows = await select(
    pool,
    `SELECT 1 FROM space_databases d JOIN space_database_accounts a ON a.database_id = d.id
      WHERE d.server_name = ? AND d.space_id = ? AND d.state = 'living' AND a.app_id IS NOT NULL AND a.revoked_at IS NULL
      LIMIT 1`,
    [serverName, spaceId],
  );
  return rows.length > 0;
}

/** For each of these databases, the items of the apps that are connected to it. */
export async function appsConnectedTo(
  { pool }: Pick<Database, 'pool'>,
  databaseIds: readonly string[],
): Promise<Map<string, string[]>> {
  if (databaseIds.length === 0) return new Map();
  const sql = `SELECT database_id, item_id FROM space_database_accounts
      WHERE database_id IN (?) AND app_id IS NOT NULL AND revoked_at IS NULL ORDER BY id`;
  const rows = await select(pool, sql, [databaseIds]);
  const grouped = Map.groupBy(rows, ({ databaseId }) => String(databaseId));
  return new Map([...grouped].map(([id, found]) => [id, found.map(({ itemId }) => String(itemId))]));
}

/** Revokes the accounts of these apps, in the transaction that removes the apps. */
export async function revokeAccountsOf(tx: Transaction, appIds: readonly string[]): Promise<void> {
  if (appIds.length === 0) return;
  const now = new Date();
  await execute(
    tx,
    `UPDATE space_databases d JOIN space_database_accounts a ON a.database_id = d.id
        SET d.due_at = ?, d.version = d.version + 1 WHERE a.app_id IN (?) AND a.revoked_at IS NULL`,
    [now, appIds],
  );
  const sql = 'UPDATE space_database_accounts SET revoked_at = ? WHERE app_id IN (?) AND revoked_at IS NULL';
  await execute(tx, sql, [now, appIds]);
}
