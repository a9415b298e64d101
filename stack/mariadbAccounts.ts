import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StackContext } from './context.ts';

export const databaseName = 'atrium';

/** The server's accounts. Each has its own password, in a file of the data directory. */
export interface Accounts {
  /** Makes and changes tables. Triggers run with its rights. */
  owner: Account;
  /** Reads and writes rows: what a running Atrium needs, and no more. */
  app: Account;
  /** The server's own administrator, whom only its socket lets in, in a folder that is its user's alone. */
  root: Account;
}

interface Account {
  user: string;
  password: string;
}

export function readOrMakeAccounts(context: StackContext): Accounts {
  const account = (user: string, file: string) => ({ user, password: readOrMakePassword(join(context.dataDir, file)) });
  return {
    owner: account('atrium', 'database-password'),
    app: account('atrium_app', 'database-app-password'),
    root: account('root', 'database-root-password'),
  };
}

export function readOrMakePassword(file: string): string {
  if (!existsSync(file)) writeFileSync(file, randomBytes(24).toString('hex'), { mode: 0o600 });
  chmodSync(file, 0o600);
  return readFileSync(file, 'utf8').trim();
}

/**
 * Runs at each start before the first connection is let in. Rights that an earlier version has given are taken back.
 * `databases` are names as GRANT has them, with their wildcards: on those the accounts have their rights, and on
 * nothing else.
 */
export function setupStatements({ owner, app, root }: Accounts, databases: string[]): string {
  const grants = databases.flatMap((name) => [
    `GRANT ALL PRIVILEGES ON \`${name}\`.* TO ${at(owner)};`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON \`${name}\`.* TO ${at(app)};`,
  ]);
  return [
    `CREATE DATABASE IF NOT EXISTS ${databaseName} CHARACTER SET utf8mb4;`,
    ...[owner, app].flatMap((account) => [
      `CREATE USER IF NOT EXISTS ${at(account)} IDENTIFIED BY '${account.password}';`,
      `ALTER USER ${at(account)} IDENTIFIED BY '${account.password}';`,
      `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${at(account)};`,
    ]),
    ...grants,
    `ALTER USER 'root'@'localhost' IDENTIFIED BY '${root.password}';`,
    // What the installer may have made beside them. It names some by the machine, which the server never asks for
    // (--skip-name-resolve).
    "DELETE FROM mysql.global_priv WHERE User IN ('', 'root') AND NOT (User = 'root' AND Host = 'localhost');",
    'FLUSH PRIVILEGES;',
    '',
  ].join('\n');
}

const at = ({ user }: Account) => `'${user}'@'127.0.0.1'`;
