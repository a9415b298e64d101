import { Connection } from '@temporalio/client';
import { migrateInstallation, pendingMigrations } from '../../models/migrations/migrate.ts';
import { missingSearchAttributes } from '../../temporal/searchAttributes.ts';
import { createEmptyDatabase, createTestEnvironment } from './environment.ts';
import { readSchema, withConnection } from './schemaSnapshot.ts';

/** The times of migrations in the rows that record them. */
const timesApplied = /'\d{4}-\d\d-\d\d [\d:.]+'/;

test('each test environment has its own migrated database, installation and settings', async () => {
  const [one, other] = await Promise.all([
    createTestEnvironment(),
    createTestEnvironment({ ATRIUM_ENV: 'production' }),
  ]);
  try {
    expect(await pendingMigrations(one.database)).toEqual([]);
    expect(one.config.installation).not.toBe(other.config.installation);
    expect(one.config.database.url).not.toBe(other.config.database.url);
    expect(other.config.env).toBe('production');
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
});

test('the database of a test environment equals a migrated one', async () => {
  const [restored, migrated] = [await createTestEnvironment(), await createEmptyDatabase()];
  try {
    await migrateInstallation({ ...restored.config, migration: { databaseUrl: migrated.ownerUrl } });
    const [made, expected] = await Promise.all(
      [restored.environment.ATRIUM_DATABASE_MIGRATION_URL ?? '', migrated.ownerUrl].map((url) =>
        withConnection(url, readSchema),
      ),
    );
    const isSecret = (statement: string) => statement.includes("'developmentSecret'");
    const isIdentity = (statement: string) => statement.startsWith('INSERT INTO installation ');
    const alike = (statements: string[] = []) =>
      statements
        .filter((statement) => !isSecret(statement) && !isIdentity(statement))
        .map((each) => each.replace(timesApplied, ''));
    expect(alike(made)).toEqual(alike(expected));
    expect(expected?.filter((statement) => /^CREATE.* TRIGGER/.test(statement))).toHaveLength(4);
    for (const isOwn of [isSecret, isIdentity]) expect(made?.find(isOwn)).not.toBe(expected?.find(isOwn));
  } finally {
    await Promise.all([restored.close(), migrated.drop()]);
  }
});

test('the Temporal server knows the search attributes', async () => {
  const { config, close } = await createTestEnvironment();
  const connection = await Connection.connect({ address: config.temporal.address });
  try {
    expect(await missingSearchAttributes(connection, config.temporal.namespace)).toEqual([]);
  } finally {
    await connection.close();
    await close();
  }
});
