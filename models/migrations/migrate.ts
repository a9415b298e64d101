import type { PoolConnection } from 'mysql2/promise';
import type { QueryInterface } from 'sequelize';
import type { Umzug } from 'umzug';
import type { Config } from '../../config/index.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { migrations } from './index.ts';
import { makeMissingTriggers } from './ledgerTriggers.ts';
import { tableOptions } from './migration.ts';
import { programVersion } from './version.ts';

/**
 * Longer than any step takes in a usual installation; with larger tables, wait for the running migration and start
 * again.
 */
const lockTimeoutSeconds = 120;
const lockSpeaksMs = 60_000;

/**
 * The name contains this database's name, because named locks belong to the server. It is hashed, because a lock's name
 * may have 64 characters and a database's name as many.
 */
const lockName = "CONCAT('atrium_migrate_', LEFT(SHA2(DATABASE(), 256), 40))";

/** Another process is migrating this database and did not finish while we waited. */
export class MigrationLockError extends Error {
  override readonly name = 'MigrationLockError';
}

/** Another version of the program wrote the database, and this version would not understand it. */
export class UnknownSchemaError extends Error {
  override readonly name = 'UnknownSchemaError';
}

/**
 * Brings the schema up to date and returns the names of the steps that ran. Several processes may call it at once: a
 * named lock lets one do the work, and the others find it done. Nothing is touched without the lock. Throws {@link
 * UnknownSchemaError} when the database has steps that this version does not know.
 */
export async function migrate(database: Database, options: { lockTimeoutSeconds?: number } = {}): Promise<string[]> {
  await using patient = database.patient();
  return await migrateLocked(patient, options.lockTimeoutSeconds ?? lockTimeoutSeconds);
}

/** Like {@link migrate}, with pools of its own and the account that may change tables. */
export async function migrateInstallation({ database, migration }: Pick<Config, 'database' | 'migration'>) {
  await using pools = openDatabase({ database: { ...database, url: migration.databaseUrl ?? database.url } });
  return await migrate(pools);
}

/** Runs `work` while no process may migrate the schema. */
export async function withSchemaHeld<T>(database: Database, work: () => Promise<T>): Promise<T> {
  await using patient = database.patient();
  const connection = await patient.pool.getConnection();
  let speaking: NodeJS.Timeout | undefined;
  try {
    await connection.query('SET SESSION wait_timeout = DEFAULT');
    await takeLock(connection, lockTimeoutSeconds);
    // The server drops a connection that is silent for hours, and the lock with it. The end checks that the lock was
    // kept.
    speaking = setInterval(() => void connection.query('SELECT 1').catch(() => undefined), lockSpeaksMs);
    const done = await work();
    await assertLocked(connection);
    return done;
  } finally {
    clearInterval(speaking);
    // The server frees the lock when its connection ends, with the pool.
    connection.release();
  }
}

/** The names of the steps that have run, and when this installation was made. */
export async function schemaOf({ pool }: Pick<Database, 'pool'>): Promise<{ migrations: string[]; madeAt: string }> {
  const sql = "SELECT name, DATE_FORMAT(applied_at, '%Y-%m-%dT%H:%i:%s.%f') AS at FROM schema_migrations ORDER BY name";
  const rows = await select(pool, sql);
  return { migrations: rows.map(({ name }) => name as string), madeAt: String(rows[0]?.at) };
}

/** The first step of every database made before the first release, when the schema had other steps. */
const firstUnreleased = '0001-identity';

/** Whether these are steps from before the first release. */
export function areUnreleased(names: readonly string[]): boolean {
  return names.includes(firstUnreleased);
}

/** The steps among these that this version does not know. */
export function unknownMigrations(names: readonly string[]): string[] {
  const known = new Set(migrations.map(({ name }) => name));
  return names.filter((name) => !known.has(name));
}

/** Throws {@link UnknownSchemaError} when the database has steps that this version does not know. */
export async function assertKnownSchema({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const executed = await executedIn(pool);
  if (areUnreleased(executed)) {
    throw new UnknownSchemaError(
      'The database was made by an Atrium from before the first release, whose data this version cannot use. Nothing was changed. Use an empty database.',
    );
  }
  const [unknown, ...others] = unknownMigrations(executed);
  if (unknown === undefined) return;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  throw new UnknownSchemaError(
    `The database was written by a newer Atrium${await newestVersion(pool)}: this one is ${programVersion}, and does not know the step ${unknown}${more}. Nothing was changed. Start that version again, or restore a backup from before it.`,
  );
}

/** The version that migrated the database last, in parentheses. Empty when unknown. */
async function newestVersion(pool: Database['pool']): Promise<string> {
  const tables = await select(pool, "SHOW TABLES LIKE 'program\\_versions'");
  if (tables.length === 0) return '';
  const [row] = await select(pool, 'SELECT version FROM program_versions ORDER BY migrated_at DESC LIMIT 1');
  return row === undefined ? '' : ` (${row.version})`;
}

async function migrateLocked(database: Database, timeoutSeconds: number): Promise<string[]> {
  const connection = await database.pool.getConnection();
  try {
    // The connection is silent while the steps run, and must not be dropped with its lock.
    await connection.query('SET SESSION wait_timeout = DEFAULT');
    await takeLock(connection, timeoutSeconds);
    await assertKnownSchema(database);
    const steps = (await pendingMigrations(database)).length === 0 ? [] : await runSteps(database, connection);
    await makeMissingTriggers(database);
    await database.pool.query(
      'INSERT IGNORE INTO program_versions (version, migrated_at) VALUES (?, UTC_TIMESTAMP(3))',
      [programVersion],
    );
    return steps;
  } finally {
    // The server frees the lock when its connection ends, with the pool.
    connection.release();
  }
}

async function runSteps(database: Database, connection: PoolConnection): Promise<string[]> {
  const umzug = await createUmzug(database);
  umzug.on('migrating', () => assertLocked(connection));
  const steps = await umzug.up();
  return steps.map((step) => step.name);
}

async function takeLock(connection: PoolConnection, timeoutSeconds: number): Promise<void> {
  const [lock] = await select<{ taken: number | null; name: string; owner: number | null }>(
    connection,
    `SELECT GET_LOCK(${lockName}, ?) AS taken, DATABASE() AS name, IS_USED_LOCK(${lockName}) AS owner`,
    [timeoutSeconds],
  );
  if (lock?.taken === 1) return;
  throw new MigrationLockError(
    `The database ${lock?.name} is being migrated by another process (connection ${lock?.owner ?? 'unknown'}), which has not finished within ${timeoutSeconds} s. Nothing was changed here: wait for it, then start again.`,
  );
}

/** Checked before each step: the lock is lost with its connection, and another process may have begun. */
async function assertLocked(connection: PoolConnection): Promise<void> {
  const sql = `SELECT IS_USED_LOCK(${lockName}) = CONNECTION_ID() AS locked, DATABASE() AS name`;
  const rows = await select(connection, sql);
  if (rows[0]?.locked === 1) return;
  throw new MigrationLockError(`The lock on the schema of ${rows[0]?.name} was lost. Start again.`);
}

/** The names of the steps that have not run yet. Only reads. */
export async function pendingMigrations({ pool }: Database): Promise<string[]> {
  const executed = await executedIn(pool);
  return migrations.map(({ name }) => name).filter((name) => !executed.includes(name));
}

/** The steps that have run. None in an empty database. */
async function executedIn(pool: Database['pool']): Promise<string[]> {
  const tables = await select(pool, "SHOW TABLES LIKE 'schema\\_migrations'");
  return tables.length === 0 ? [] : executedMigrations(pool);
}

async function executedMigrations(pool: Database['pool']): Promise<string[]> {
  const rows = await select(pool, 'SELECT name FROM schema_migrations ORDER BY name');
  return rows.map(({ name }) => name as string);
}

async function createUmzug(database: Database): Promise<Umzug<QueryInterface>> {
  const { pool } = database;
  // Imported only when there is something to do. Most starts find everything done.
  const { Umzug } = await import('umzug');
  return new Umzug<QueryInterface>({
    migrations: migrations.map((migration) => ({
      name: migration.name,
      up: ({ context }) => migration.up(context),
    })),
    context: database.sequelize.getQueryInterface(),
    storage: {
      async executed() {
        await pool.query(
          `CREATE TABLE IF NOT EXISTS schema_migrations (
            name VARCHAR(190) NOT NULL PRIMARY KEY,
            applied_at DATETIME(3) NOT NULL
          ) ${tableOptions}`,
        );
        return executedMigrations(pool);
      },
      async logMigration({ name }) {
        await pool.query('INSERT INTO schema_migrations (name, applied_at) VALUES (?, UTC_TIMESTAMP(3))', [name]);
      },
      async unlogMigration({ name }) {
        await pool.query('DELETE FROM schema_migrations WHERE name = ?', [name]);
      },
    },
    logger: undefined,
  });
}
