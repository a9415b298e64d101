import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { accountName, databaseName } from './names.ts';
import { createAccount, setPasswords } from './passwords.ts';
import { processesOn } from './processes.ts';
import { giveRights } from './rights.ts';
import { compactDatabase } from './sizes.ts';
import type { AccountLimits, WantedAccount, WantedDatabase } from './types.ts';

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
  await endConnections(connection, usersOf(shut));
  for (const id of await connectionsOf(connection, usersOf(database.accounts.filter(({ isCut }) => isCut)))) {
    await endConnection(connection, id);
  }
  if (database.compacts) await compactDatabase(connection, database.name, { signal: database.signal });
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
  database: WantedDatabase,
  { maxConnections, queryMs }: AccountLimits,
): Promise<void> {
  const called = accountName(account.user);
  const isThere = await exists(connection, account.user);
  if (!isThere) await createAccount(connection, account);
  if (!isThere || account.setsPasswords) await setPasswords(connection, account);
  await giveRights(connection, account, database);
  const time = connection.isMariaDb ? `MAX_STATEMENT_TIME ${queryMs / 1_000}` : '';
  const lock = database.state === 'locked' || account.isRevoked ? 'ACCOUNT LOCK' : 'ACCOUNT UNLOCK';
  await connection.run(`ALTER USER ${called} WITH MAX_USER_CONNECTIONS ${maxConnections} ${time} ${lock}`);
}

async function exists(connection: TenantConnection, user: string): Promise<boolean> {
  return (await connection.rows("SELECT 1 FROM mysql.user WHERE User = ? AND Host = '%'", [user])).length > 0;
}

const usersOf = (accounts: readonly WantedAccount[]) => accounts.map(({ user }) => user);

/** Takes a database from the server, with its accounts and whoever is in by them. Safe to repeat. */
export async function remove(connection: TenantConnection, database: WantedDatabase): Promise<void> {
  for (const { user } of database.accounts) {
    if (await exists(connection, user)) await connection.run(`ALTER USER ${accountName(user)} ACCOUNT LOCK`);
  }
  await endConnections(connection, usersOf(database.accounts));
  // A transaction that somebody prepared and left holds this up until the watchdog ends it: which of them are this
  // tenant's, the server does not tell.
  await connection.run(`DROP DATABASE IF EXISTS ${databaseName(database.name)}`);
  for (const { user } of database.accounts) await connection.run(`DROP USER IF EXISTS ${accountName(user)}`);
}

/** Locking an account, and even dropping it, ends none of its connections. */
export async function endConnections(connection: TenantConnection, users: readonly string[]): Promise<void> {
  for (let attempt = 0; attempt < endAttempts; attempt++) {
    const open = await connectionsOf(connection, users);
    if (open.length === 0) return;
    for (const id of open) await endConnection(connection, id);
    await connection.run('DO SLEEP(0.05)');
  }
  throw new TenantServerError({ code: 'CONNECTIONS_DO_NOT_END' });
}

async function connectionsOf(connection: TenantConnection, users: readonly string[]): Promise<number[]> {
  if (users.length === 0) return [];
  const open = await processesOn(connection);
  return open.filter(({ user }) => users.includes(user)).map(({ id }) => id);
}

export async function endConnection(connection: TenantConnection, id: number, what = ''): Promise<void> {
  await connection.run(`KILL ${what} ${Number(id)}`).catch((error: unknown) => {
    if (!(error instanceof TenantServerError) || error.errno !== noSuchThread) throw error;
  });
}
