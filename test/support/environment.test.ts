import { Connection } from '@temporalio/client';
import { pendingMigrations } from '../../models/migrate.ts';
import { missingSearchAttributes } from '../../temporal/searchAttributes.ts';
import { createTestEnvironment } from './environment.ts';

test('a test environment is migrated and apart from every other', async () => {
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
