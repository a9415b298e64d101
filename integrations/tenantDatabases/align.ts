import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { accountName, databaseName, grantedName } from './names.ts';
import { setPasswords } from './passwords.ts';
import { rollBackAbandoned } from './preparedTransactions.ts';
import type { AccountLimits, WantedAccount, WantedDatabase } from './types.ts';

/** What a space may do in its own database, and nowhere else. */
const rights = `SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES,
  LOCK TABLES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EXECUTE, TRIGGER`;

const lockWaitTimedOut = 1205;
const noSuchThread = 1094;
const endAttempts = 20;

/** Makes the server have a database as it is wanted, whatever it has of it now. Safe to end anywhere, and to repeat. */
export async function alignDatabase(
  connection: TenantConnection,
  database: WantedDatabase,
  limits: AccountLimits,
): Promise<void> {
  if (database.state === 'gone') return remove(connection, database);
  await createDatabase(connection, database.name);
  for (const account of database.accounts) await alignAccount(connection, account, database, limits);
  const shut = database.accounts.filter(({ isRevoked }) => isRevoked || database.state === 'locked');
  await endConnections(connection, shut);
}

/** Where it is there, nothing is asked: MySQL would have even that wait for any transaction that its tenant has open. */
async function createDatabase(connection: TenantConnection, name: string): Promise<void> {
  const sql = 'SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?';
  if ((await connection.rows(sql, [name])).length > 0) return;
  await connection.run(`CREATE DATABASE IF NOT EXISTS ${databaseName(name)} CHARACTER SET utf8mb4`);
}

/** An account gets in only when all the rest of it is right: it is locked until then. */
async function alignAccount(
  connection: TenantConnection,
  account: WantedAccount,
  { name, state }: WantedDatabase,
  { maxConnections, queryMs }: AccountLimits,
): Promise<void> {
  const called = accountName(account.user);
  const isThere = await exists(connection, account.user);
  if (!isThere) {
    await connection.run(`CREATE USER IF NOT EXISTS ${called} IDENTIFIED BY ? ACCOUNT LOCK`, [account.password]);
  }
  if (!isThere || account.setsPasswords) await setPasswords(connection, account);
  await connection.run(`GRANT ${rights} ON ${grantedName(name)}.* TO ${called}`);
  const time = connection.isMariaDb ? `MAX_STATEMENT_TIME ${queryMs / 1_000}` : '';
  const lock = state === 'locked' || account.isRevoked ? 'ACCOUNT LOCK' : 'ACCOUNT UNLOCK';
  await connection.run(`ALTER USER ${called} WITH MAX_USER_CONNECTIONS ${maxConnections} ${time} ${lock}`);
}

async function exists(connection: TenantConnection, user: string): Promise<boolean> {
  return (await connection.rows("SELECT 1 FROM mysql.user WHERE User = ? AND Host = '%'", [user])).length > 0;
}

async function remove(connection: TenantConnection, database: WantedDatabase): Promise<void> {
  for (const { user } of database.accounts) {
    if (await exists(connection, user)) await connection.run(`ALTER USER ${accountName(user)} ACCOUNT LOCK`);
  }
  await endConnections(connection, database.accounts);
  const drop = () => connection.run(`DROP DATABASE IF EXISTS ${databaseName(database.name)}`);
  await drop().catch(async (error: unknown) => {
    // Nobody is connected any more, so what holds it up is a transaction that somebody prepared and left.
    if (!(error instanceof TenantServerError) || error.errno !== lockWaitTimedOut) throw error;
    await rollBackAbandoned(connection);
    await drop();
  });
  for (const { user } of database.accounts) await connection.run(`DROP USER IF EXISTS ${accountName(user)}`);
}

/** Locking an account, and even dropping it, ends none of its connections. */
async function endConnections(connection: TenantConnection, accounts: readonly WantedAccount[]): Promise<void> {
  const users = accounts.map(({ user }) => user);
  if (users.length === 0) return;
  for (let attempt = 0; attempt < endAttempts; attempt++) {
    const sql = 'SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER IN (?)';
    const open = await connection.rows<{ id: number }>(sql, [users]);
    if (open.length === 0) return;
    for (const { id } of open) await endConnection(connection, id);
    await connection.run('DO SLEEP(0.05)');
  }
  throw new TenantServerError({ code: 'CONNECTIONS_DO_NOT_END' });
}

export async function endConnection(connection: TenantConnection, id: number, what = ''): Promise<void> {
  await connection.run(`KILL ${what} ${Number(id)}`).catch((error: unknown) => {
    if (!(error instanceof TenantServerError) || error.errno !== noSuchThread) throw error;
  });
}
