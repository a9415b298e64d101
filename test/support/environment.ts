import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { type Config, type Environment, loadConfig } from '../../config/index.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';
import { hurryWhileWaiting } from './hurry.ts';
import { forgetInstallation } from './runServer.ts';
import { restoreSnapshot, schemaVariable } from './schemaSnapshot.ts';
import { testVariablePrefix } from './stackVariables.ts';

/** Entries are named by their contents, so all tests can share this folder. */
const sharedCache = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'atrium-tests');

/** An Atrium of a test's own. Other tests see nothing that it writes or starts. */
export interface TestEnvironment {
  config: Config;
  /** The variables behind `config`, for a process that the test starts. */
  environment: Environment;
  database: Database;
  /** Closes the pools, and drops the database if it was made here. */
  close(): Promise<void>;
}

/**
 * Makes a new, migrated database and an installation with its own name, and so its own task queues and schedules, on
 * this run's stack. `overrides` are variables of config/.
 */
export async function createTestEnvironment(overrides: Environment = {}): Promise<TestEnvironment> {
  const name = `test-${randomBytes(6).toString('hex')}`;
  const dataDir = mkdtempSync(join(tmpdir(), 'atrium-environment-'));
  mkdirSync(sharedCache, { recursive: true });
  symlinkSync(sharedCache, join(dataDir, 'cache'));
  const stack = stackEnvironment();
  const empty = await createEmptyDatabase();
  const environment: Environment = {
    ...stack,
    ATRIUM_ENV: 'test',
    ATRIUM_INSTALLATION: name,
    ATRIUM_LOG_LEVEL: 'silent',
    ATRIUM_COMPUTERS: 'off',
    // Saved homes count as bytes of their space, which tests of the drive compare.
    ATRIUM_COMPUTER_SAVE_SECONDS: '0',
    ATRIUM_DATA_DIR: dataDir,
    ATRIUM_PORT: '0',
    ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
    ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '0',
    ATRIUM_DATABASE_URL: empty.url,
    ATRIUM_DATABASE_MIGRATION_URL: empty.ownerUrl,
    ATRIUM_DATABASE_POOL_SIZE: '10',
    ATRIUM_MASTER_KEY: randomBytes(32).toString('base64'),
    ...overrides,
  };
  const opened = openTestEnvironment(environment);
  await restoreSnapshot(empty.ownerUrl, process.env[schemaVariable] ?? '');
  const endHurry = hurryWhileWaiting(environment);

  return {
    ...opened,
    async close() {
      endHurry();
      await opened.close();
      await empty.drop();
      await forgetInstallation(name);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Opens an existing database. Its owner drops it. */
export function openTestEnvironment(environment: Environment): TestEnvironment {
  const config = loadConfig(environment);
  const database = openDatabase(config);
  return { config, environment, database, close: () => database.close() };
}

/** The server was still removing the file of a table. */
const folderNotEmpty = 1_010;

/**
 * An empty database on this run's server. `url` is for Atrium's own account, `ownerUrl` for the account that may change
 * tables.
 */
export async function createEmptyDatabase(): Promise<{ url: string; ownerUrl: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  const stack = stackEnvironment();
  const { ATRIUM_DATABASE_URL: appUrl = '', ATRIUM_DATABASE_MIGRATION_URL: ownerUrl = appUrl } = stack;
  const administer = (statement: string) => runStatement(ownerUrl, statement);
  await administer(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const inside = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const drop = () =>
    administer(`DROP DATABASE ${name}`).catch((error: { errno?: number }) => {
      if (error.errno !== folderNotEmpty) throw error;
      return administer(`DROP DATABASE IF EXISTS ${name}`);
    });
  return { url: inside(appUrl), ownerUrl: inside(ownerUrl), drop };
}

/** The addresses of this run's stack, as variables of config/. */
export function stackEnvironment(): Environment {
  const entries = Object.entries(process.env).filter(([name]) => name.startsWith(testVariablePrefix));
  if (entries.length === 0) throw new Error('There is no test stack. Run tests with "npm test".');
  return Object.fromEntries(entries.map(([name, value]) => [name.replace(testVariablePrefix, 'ATRIUM_'), value]));
}

/**
 * Runs a statement over a new connection. With `ATRIUM_DATABASE_MIGRATION_URL` it may do more than Atrium's account.
 */
export async function runStatement(url: string | undefined, statement: string): Promise<void> {
  const connection = await mysql.createConnection({ uri: url });
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
}
