import { createHash } from 'node:crypto';
import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { accountName, databaseName, grantedName } from './names.ts';
import { processesOn } from './processes.ts';
import { compactDatabase } from './sizes.ts';
import type { AccountLimits, WantedAccount, WantedDatabase } from './types.ts';

const noSuchThread = 1094;
const endAttempts = 20;

/** Aligns the server with a wanted database, from any state. May be cut off anywhere, and repeated. */
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
  if (database.compacts) await compactDatabase(connection, database.name, database.signal);
}

/** Asks first, because on MySQL even IF NOT EXISTS waits for all open transactions of the tenant. */
async function createDatabase(connection: TenantConnection, name: string): Promise<void> {
  const sql = 'SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?';
  if ((await connection.rows(sql, [name])).length > 0) return;
  await connection.run(`CREATE DATABASE IF NOT EXISTS ${databaseName(name)} CHARACTER SET utf8mb4`);
}

/** Aligns an account. It stays locked until everything else about it is right. */
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

/** Removes a database from the server, with its accounts and their connections. May be repeated. */
export async function remove(connection: TenantConnection, database: WantedDatabase): Promise<void> {
  for (const { user } of database.accounts) {
    if (await exists(connection, user)) await connection.run(`ALTER USER ${accountName(user)} ACCOUNT LOCK`);
  }
  await endConnections(connection, usersOf(database.accounts));
  // A prepared transaction that was abandoned blocks this until the watchdog ends it. The server does not tell which
  // ones are this tenant's.
  await connection.run(`DROP DATABASE IF EXISTS ${databaseName(database.name)}`);
  for (const { user } of database.accounts) await connection.run(`DROP USER IF EXISTS ${accountName(user)}`);
}

/** Ends the connections of accounts. Neither locking nor dropping an account does that. */
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

/** Makes a locked account without rights. MariaDB gets a hash, so it cannot log the password. */
function createAccount(connection: TenantConnection, { user, password }: WantedAccount): Promise<void> {
  const sql = `CREATE USER IF NOT EXISTS ${accountName(user)} IDENTIFIED`;
  if (connection.isMariaDb) return connection.run(`${sql} VIA ${nativeWay(password)} ACCOUNT LOCK`);
  return connection.run(`${sql} BY ? ACCOUNT LOCK`, [password]);
}

/** Sets an account's password. The previous one stays valid beside it. */
async function setPasswords(connection: TenantConnection, { user, password, previous }: WantedAccount): Promise<void> {
  const account = accountName(user);
  if (connection.isMariaDb) {
    const ways = [password, previous].flatMap((one) => (one === undefined ? [] : [nativeWay(one)]));
    return connection.run(`ALTER USER ${account} IDENTIFIED VIA ${ways.join(' OR ')}`);
  }
  // The server keeps one password beside the current one: the one that was current before.
  await connection.run(`ALTER USER ${account} IDENTIFIED BY ?`, [previous ?? password]);
  await connection.run(`ALTER USER ${account} DISCARD OLD PASSWORD`);
  if (previous === undefined) return;
  await connection.run(`ALTER USER ${account} IDENTIFIED BY ? RETAIN CURRENT PASSWORD`, [password]);
}

/** The hash that the server stores for a password. */
function nativeWay(password: string): string {
  const sha1 = (data: string | Buffer) => createHash('sha1').update(data).digest();
  return `mysql_native_password USING '*${sha1(sha1(password)).toString('hex').toUpperCase()}'`;
}

/** The rights of a space in its own database, whatever its size. It has none elsewhere. */
const always = 'SELECT, DELETE, DROP, LOCK TABLES, SHOW VIEW, EXECUTE';

/** The rights with which a database can grow. */
const whileNotFull = `INSERT, UPDATE, CREATE, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, CREATE VIEW,
  CREATE ROUTINE, ALTER ROUTINE`;

/** Without this, deletes that fire a trigger fail. So it is revoked only if definitions alone fill the database. */
const triggers = 'TRIGGER';

const onlyReading = 'SELECT, SHOW VIEW';

/** Gives an account its rights in a database. Open connections keep their earlier rights. */
async function giveRights(
  connection: TenantConnection,
  { user, onlyReads }: { user: string; onlyReads: boolean },
  { name, isFull, isFullOfDefinitions = false }: Pick<WantedDatabase, 'name' | 'isFull' | 'isFullOfDefinitions'>,
): Promise<void> {
  const [place, account] = [`${grantedName(name)}.*`, accountName(user)];
  if (onlyReads) return connection.run(`GRANT ${onlyReading} ON ${place} TO ${account}`);
  const given = [always, ...(isFull ? [] : [whileNotFull]), ...(isFullOfDefinitions ? [] : [triggers])];
  const taken = [...(isFull ? [whileNotFull] : []), ...(isFullOfDefinitions ? [triggers] : [])];
  await connection.run(`GRANT ${given.join(', ')} ON ${place} TO ${account}`);
  // MySQL refuses to revoke an absent right, unless it is told IF EXISTS. MariaDB does not refuse.
  const revoke = connection.isMariaDb ? 'REVOKE' : 'REVOKE IF EXISTS';
  if (taken.length > 0) await connection.run(`${revoke} ${taken.join(', ')} ON ${place} FROM ${account}`);
}
