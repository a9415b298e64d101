import { MockActivityEnvironment } from '@temporalio/testing';
import type { DatabaseDeps } from '../../../activities/databases/deps.ts';
import { createDatabaseActivities } from '../../../activities/databases/index.ts';
import { newId } from '../../../base/ids.ts';
import { finishAlignment } from '../../../models/databases/alignment.ts';
import { createSpaceDatabases, type SpaceDatabases } from '../../../models/databases/index.ts';
import { purgeDatabasesOf } from '../../../models/databases/purge.ts';
import { databasesSchema } from '../../../models/databases/schema.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Atrium runs without the server that holds its databases. It remembers the databases that it must remove there.

let environment: TestEnvironment;
let databases: SpaceDatabases;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  databases = createSpaceDatabases(database, await openEnvelope(database, config), config);
});
afterAll(() => environment.close());

const query = (sql: string, values: unknown[] = []) => environment.database.pool.query(sql, values);

/** A database that exists on the server. */
async function make() {
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const spaceId = (await buildSpace(identity, user.id)).space.id;
  const actor = { userId: user.id, credentialId: null, address: null };
  const id = newId('spaceDatabase');
  await databases.wishes.make({ id, spaceId, name: 'shop' }, actor);
  await settle(id);
  return { id, spaceId, actor };
}

/** Marks the database as aligned, as if the server had done the work. */
async function settle(id: string): Promise<void> {
  const wanted = await databases.alignment(id);
  if (wanted === undefined) throw new Error('It has a row.');
  expect(await finishAlignment(environment.database, wanted)).toBe(true);
}

async function alignWithoutServer(databaseId: string): Promise<void> {
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  const common = { config, database, logger, spaceDatabases: databases, workflows: {} };
  const activities = createDatabaseActivities({ ...common, tenantServer: undefined } as unknown as DatabaseDeps);
  await new MockActivityEnvironment().run(() => activities.alignDatabase({ databaseId }));
}

async function rowsOf(spaceId: string): Promise<object[][]> {
  const sql = (table: string) => `SELECT * FROM ${table} WHERE space_id = ?`;
  const tables = ['space_databases', 'space_database_accounts'];
  return Promise.all(tables.map(async (table) => (await query(sql(table), [spaceId]))[0] as object[]));
}

test('A database that is due for purge stays due', async () => {
  const asked = await make();
  await databases.wishes.remove(asked);
  await settle(asked.id);
  await query('UPDATE space_databases SET purge_at = ?, due_at = ? WHERE id = ?', [new Date(0), new Date(0), asked.id]);
  await expect(alignWithoutServer(asked.id)).rejects.toThrow('A service is unavailable; trying again.');
  const [rows] = await rowsOf(asked.spaceId);
  expect(rows).toEqual([expect.objectContaining({ due_at: expect.any(Date), is_made: 1 })]);
});

test('The rows of a deleted space’s databases stay until the server has removed them', async () => {
  const { id, spaceId } = await make();
  const { database } = environment;
  expect(await purgeDatabasesOf(database, spaceId)).toEqual([{ id, spaceId }]);
  await databasesSchema.finish?.(database, spaceId);
  const [rows, accounts] = await rowsOf(spaceId);
  expect(rows).toEqual([expect.objectContaining({ id, name: '', live_name: null, state: 'purged' })]);
  expect(accounts).toHaveLength(3);
  // The space's keys are gone by then, so no sealed value can be opened.
  await query("UPDATE space_database_accounts SET sealed = 'nothing' WHERE database_id = ?", [id]);
  await settle(id);
  await databasesSchema.finish?.(database, spaceId);
  expect(await rowsOf(spaceId)).toEqual([[], []]);
});
