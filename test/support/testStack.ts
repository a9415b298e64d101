import { chmodSync, cpSync, mkdtempSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../config/index.ts';
import { loadLaunchConfig } from '../../config/launch.ts';
import { migrateInstallation } from '../../models/migrations/migrate.ts';
import { lockDataDir, removeDataDir } from '../../stack/folders.ts';
import { type Stack, startStack } from '../../stack/index.ts';
import { getAgent, getDriveDaemon } from '../../stack/programs.ts';
import { createEmptyDatabase, stackEnvironment } from './environment.ts';
import { runServerVariable } from './runServer.ts';
import { prepareSnapshot, schemaVariable } from './schemaSnapshot.ts';
import { type RunServer, serveSharedProducts } from './sharedProducts.ts';
import { testVariablePrefix } from './stackVariables.ts';
import { startTestTenants, type TestTenants } from './tenants.ts';
import { chooseDatabase, databaseVariables, testDatabases, versionOf } from './testDatabase.ts';

const folderPrefix = 'atrium-test-';
const logsPrefix = 'atrium-logs-';
/** Kept between runs. */
const compileCache = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'atrium-tests', 'compiled');

let runServer: RunServer | undefined;
let stack: Stack | undefined;
/** Set when a part ended by itself, since its log may say why. */
let keepsLogs = false;
let tenants: Promise<TestTenants> | undefined;
let stopDatabase: (() => Promise<void>) | undefined;
let dataDir: string | undefined;
let lock: { release(): void } | undefined;

/**
 * Starts one stack for all test files of this run, with its own data and ports. So tests can run beside an Atrium and
 * beside each other. Each test uses its own database and installation on it (`environment.ts`).
 */
export async function startTestStack(): Promise<void> {
  removeLeftovers();
  dataDir = mkdtempSync(join(tmpdir(), folderPrefix));
  chmodSync(dataDir, 0o711);
  lock = lockDataDir(dataDir);
  const abort = new AbortController();
  stopOnSignal(abort);

  const launch = loadLaunchConfig({ ...process.env, ATRIUM_DATA_DIR: dataDir });
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  const database = await chooseDatabase({ ...launch, report, signal: abort.signal });
  stopDatabase = database?.stop;
  stack = await startStack({
    ...launch,
    need: { database: database === undefined, temporal: true, storage: true },
    bucket: 'atrium-test',
    furtherDatabases: [testDatabases],
    durability: 'relaxed',
    ports: 'free',
    report,
    signal: abort.signal,
  });
  const context = { ...launch, dataDir, report, signal: abort.signal };
  // Or each test file would wait for their builds.
  await getAgent(context);
  await getDriveDaemon(context);
  stack.onRestart(() => {
    keepsLogs = true;
  });
  for (const [name, value] of Object.entries({ ...stack.environment, ...database?.environment })) {
    process.env[name.replace(/^ATRIUM_/, testVariablePrefix)] = value;
  }
  // Test files find the database like the rest of the stack. Programs that they start must not find it by themselves.
  for (const name of databaseVariables) delete process.env[name];
  process.env[schemaVariable] = await prepareSnapshot(
    await versionOf(stackEnvironment().ATRIUM_DATABASE_MIGRATION_URL),
    migrateEmptyDatabase,
  );
  runServer = await serveSharedProducts({ address: process.env[`${testVariablePrefix}TEMPORAL_ADDRESS`] ?? '' }, () => {
    tenants ??= startTestTenants(context);
    return tenants.then(({ environment }) => environment);
  });
  process.env[runServerVariable] = runServer.url;
  // Every Atrium that a test starts loads the same modules. The compile cache saves a third of the work of a start,
  // also in the next run.
  process.env.NODE_COMPILE_CACHE ??= compileCache;
}

export async function stopTestStack(): Promise<void> {
  await runServer?.close();
  await (await tenants?.catch(() => undefined))?.stop();
  await stack?.stop();
  await stopDatabase?.();
  lock?.release();
  if (dataDir === undefined) return;
  if (keepsLogs) {
    const kept = dataDir.replace(folderPrefix, logsPrefix);
    cpSync(join(dataDir, 'logs'), kept, { recursive: true });
    process.stderr.write(`A part of the stack had to be started again. The logs are in ${kept}.\n`);
  }
  removeDataDir(dataDir);
}

/** Calls `work` with the URL of a database that the migrations have just made. */
async function migrateEmptyDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const empty = await createEmptyDatabase();
  try {
    await migrateInstallation(
      loadConfig({ ...stackEnvironment(), ATRIUM_ENV: 'test', ATRIUM_DATABASE_MIGRATION_URL: empty.ownerUrl }),
    );
    return await work(empty.ownerUrl);
  } finally {
    await empty.drop();
  }
}

/** On a signal Jest exits at once, without its teardown. */
function stopOnSignal(abort: AbortController): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => {
      abort.abort(new Error(`Stopped by ${signal}.`));
      void stopTestStack().finally(() => process.exit(code));
    });
  }
}

/** A run that has just begun has its folder but no lock yet. */
const leftoverAgeMs = 60_000;

/** Removes the data of killed runs. A run whose lock is held is still running. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(folderPrefix)) continue;
    const folder = join(tmpdir(), name);
    try {
      if (Date.now() - statSync(folder).ctimeMs < leftoverAgeMs) continue;
      const held = lockDataDir(folder);
      removeDataDir(folder);
      held.release();
    } catch {
      // The folder is in use, or belongs to another user.
    }
  }
}
