import mysql, { type RowDataPacket } from 'mysql2/promise';
import type { Environment } from '../../config/index.ts';
import { StackError } from '../../stack/errors.ts';
import { prepareDataDir, prepareServicesDir } from '../../stack/folders.ts';
import type { Report } from '../../stack/report.ts';
import { startMySql } from './mysql.ts';

/** Names of the databases that tests make, as GRANT takes them. */
export const testDatabases = 'test\\_%';

/**
 * Variables that choose the server for tests: ATRIUM_DATABASE_URL, a private MySQL (`npm run test:mysql`), or by
 * default the embedded server.
 */
export const databaseVariables = ['ATRIUM_DATABASE_URL', 'ATRIUM_DATABASE_MIGRATION_URL', 'ATRIUM_TEST_DATABASE'];

interface Options {
  dataDir: string;
  cacheDir: string;
  environment: Environment;
  report: Report;
  signal: AbortSignal;
}

interface TestDatabase {
  environment: Record<string, string>;
  stop?: () => Promise<void>;
}

/** Starts the chosen server. Undefined means the embedded one. */
export async function chooseDatabase(options: Options): Promise<TestDatabase | undefined> {
  const { environment, report } = options;
  const url = environment.ATRIUM_DATABASE_URL;
  const kind = environment.ATRIUM_TEST_DATABASE;
  if (kind !== undefined && kind !== 'mysql') throw new StackError('ATRIUM_TEST_DATABASE may be "mysql".');
  const database = url ? given(url, environment.ATRIUM_DATABASE_MIGRATION_URL) : kind && (await privateMySql(options));
  if (!database) return undefined;
  report(`Tests run on ${await versionOf(database.environment.ATRIUM_DATABASE_MIGRATION_URL)}`);
  return database;
}

function given(url: string, ownerUrl = url): TestDatabase {
  return { environment: { ATRIUM_DATABASE_URL: url, ATRIUM_DATABASE_MIGRATION_URL: ownerUrl } };
}

async function privateMySql({ dataDir, cacheDir, environment, report, signal }: Options): Promise<TestDatabase> {
  prepareDataDir(dataDir);
  const context = { dataDir, servicesDir: prepareServicesDir(dataDir), cacheDir, environment, report, signal };
  const { url, ownerUrl, stop } = await startMySql(
    { ...context, ports: 'free', bucket: '' },
    { databases: ['atrium', testDatabases] },
  );
  return { environment: { ATRIUM_DATABASE_URL: url, ATRIUM_DATABASE_MIGRATION_URL: ownerUrl }, stop };
}

export async function versionOf(url: string | undefined): Promise<string> {
  const connection = await mysql.createConnection({ uri: url });
  try {
    const [rows] = await connection.query<RowDataPacket[]>('SELECT VERSION() AS version');
    const version = String(rows[0]?.version);
    return version.includes('MariaDB') ? version : `MySQL ${version}`;
  } finally {
    await connection.end();
  }
}
