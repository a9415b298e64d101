import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDurablySync } from '../disk/durable.ts';
import type { StackContext } from './context.ts';

export const databaseName = 'atrium';

/** The server's accounts. The data directory has a file for each password. */
export interface Accounts {
  /** Makes and changes tables. Triggers run with its rights. */
  owner: Account;
  /** Reads and writes rows. A running Atrium needs no more. */
  app: Account;
  /**
   * The server's own administrator. It can log in only over the socket, whose folder only the server's user can enter.
   */
  root: Account;
}

export interface Account {
  user: string;
  password: string;
}

export function readOrMakeAccounts({ dataDir }: Pick<StackContext, 'dataDir'>): Accounts {
  return {
    owner: readOrMakeAccount(dataDir, 'atrium', 'database-password'),
    app: readOrMakeAccount(dataDir, 'atrium_app', 'database-app-password'),
    root: readOrMakeAccount(dataDir, 'root', 'database-root-password'),
  };
}

export function readOrMakeAccount(dataDir: string, user: string, file: string): Account {
  return { user, password: readOrMakePassword(join(dataDir, file)) };
}

function readOrMakePassword(file: string): string {
  if (!existsSync(file)) createDurablySync(file, randomBytes(24).toString('hex'));
  chmodSync(file, 0o600);
  return readFileSync(file, 'utf8').trim();
}

/**
 * Runs at each start, before the first connection is accepted. Revokes rights that an earlier version granted.
 * `databases` are names as GRANT takes them, with wildcards. The accounts get rights on these and nothing else.
 */
export function setupStatements({ owner, app, root }: Accounts, databases: string[]): string {
  const grants = databases.flatMap((name) => [
    `GRANT ALL PRIVILEGES ON \`${name}\`.* TO ${accountAt(owner)};`,
    ...[overTcp, overSocket].map(
      (host) => `GRANT SELECT, INSERT, UPDATE, DELETE ON \`${name}\`.* TO ${accountAt(app, host)};`,
    ),
  ]);
  return [
    `CREATE DATABASE IF NOT EXISTS ${databaseName} CHARACTER SET utf8mb4;`,
    ...[owner, app].flatMap((account) => accountStatements(account)),
    ...accountStatements(app, overSocket),
    ...grants,
    rootStatement(root),
    ...removalOfOthers,
    '',
  ].join('\n');
}

/** Makes an account with its password and without rights. */
export function accountStatements(account: Account, host = overTcp): string[] {
  const name = accountAt(account, host);
  return [
    `CREATE USER IF NOT EXISTS ${name} IDENTIFIED BY '${account.password}';`,
    `ALTER USER ${name} IDENTIFIED BY '${account.password}';`,
    `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${name};`,
  ];
}

export function rootStatement({ password }: Account): string {
  return `ALTER USER 'root'@'localhost' IDENTIFIED BY '${password}';`;
}

/**
 * Removes accounts that MariaDB's installer may have made. It names some by the machine's host name, which the server
 * never looks up (--skip-name-resolve).
 */
export const removalOfOthers = [
  "DELETE FROM mysql.global_priv WHERE User IN ('', 'root') AND NOT (User = 'root' AND Host = 'localhost');",
  'FLUSH PRIVILEGES;',
];

/** The server tells accounts apart by where the connection comes from. */
const overTcp = '127.0.0.1';
const overSocket = 'localhost';

export const accountAt = ({ user }: Account, host = overTcp) => `'${user}'@'${host}'`;
