import type { QueryInterface } from 'sequelize';
import { Umzug } from 'umzug';
import type { Database } from './database.ts';
import { migrations } from './migrations/index.ts';

/** One step of the schema. MySQL commits each DDL statement by itself, so a step must be safe to run again. */
export interface Migration {
  name: string;
  up(queryInterface: QueryInterface): Promise<void>;
}

const lockName = 'atrium_migrate';
const lockTimeoutSeconds = 120;

/**
 * Brings the schema up to date and returns the names of the steps that ran. Several processes may call it at once:
 * MySQL's named lock lets one do the work and the others find it done.
 */
export async function migrate(database: Database): Promise<string[]> {
  const lockConnection = await database.pool.getConnection();
  try {
    // It says nothing while the steps run, and must not lose the lock for that.
    await lockConnection.query('SET SESSION wait_timeout = DEFAULT');
    await lockConnection.query('SELECT GET_LOCK(?, ?)', [lockName, lockTimeoutSeconds]);
    const umzug = createUmzug(database);
    return (await umzug.up()).map((step) => step.name);
  } finally {
    await lockConnection.query('SELECT RELEASE_LOCK(?)', [lockName]).catch(() => undefined);
    lockConnection.destroy();
  }
}

/** The names of the steps that have not run yet. */
export async function pendingMigrations(database: Database): Promise<string[]> {
  return (await createUmzug(database).pending()).map((step) => step.name);
}

function createUmzug(database: Database): Umzug<QueryInterface> {
  const { pool } = database;
  return new Umzug<QueryInterface>({
    migrations: migrations.map((migration) => ({
      name: migration.name,
      up: ({ context }) => migration.up(context),
    })),
    context: database.sequelize.getQueryInterface(),
    storage: {
      async executed() {
        await pool.query(
          'CREATE TABLE IF NOT EXISTS schema_migrations (name VARCHAR(190) NOT NULL PRIMARY KEY, applied_at DATETIME(3) NOT NULL)',
        );
        const [rows] = await pool.query('SELECT name FROM schema_migrations ORDER BY name');
        return (rows as { name: string }[]).map((row) => row.name);
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
