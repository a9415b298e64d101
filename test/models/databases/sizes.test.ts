import { newId } from '../../../base/ids.ts';
import { createSpaceDatabases } from '../../../models/databases/index.ts';
import { recordSizes } from '../../../models/databases/sizes.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('All databases are full while the disk is full', async () => {
  const { config, database } = environment;
  const databases = createSpaceDatabases(database, await openEnvelope(database, config), config);
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const spaceId = (await buildSpace(identity, user.id)).space.id;
  const ids = [newId('spaceDatabase'), newId('spaceDatabase')];
  const actor = { userId: user.id, credentialId: null, address: null };
  for (const id of ids) await databases.wishes.make({ id, spaceId, name: id }, actor);
  await database.pool.query('UPDATE space_databases SET is_made = 1 WHERE id IN (?)', [ids]);
  const record = async (isDiskFull: boolean) => {
    const changed = await recordSizes(database, new Map(), { maxBytes: 1, maxTables: 1, isDiskFull });
    return changed.map(({ id }) => id).filter((id) => ids.includes(id));
  };
  expect(await record(false)).toEqual([]);
  expect((await record(true)).sort()).toEqual([...ids].sort());
  expect(await record(true)).toEqual([]);
  const wanted = await databases.alignment(ids[0] ?? '');
  expect(wanted).toMatchObject({ isFull: true, accounts: [{ isCut: true }, {}, {}] });
  expect((await record(false)).sort()).toEqual([...ids].sort());

  const defined = new Map([[wanted?.serverName ?? '', { bytes: 2, tables: 1 }]]);
  await recordSizes(database, defined, { maxBytes: 1, maxTables: 1, isDiskFull: false, defined });
  expect(await databases.alignment(ids[0] ?? '')).toMatchObject({ isFull: true, isFullOfDefinitions: true });
  // The accounts that make backups are not cut off.
  const sql = 'SELECT 1 FROM space_database_accounts WHERE is_cut = 1 AND purpose IS NOT NULL';
  expect((await database.pool.query(sql))[0]).toEqual([]);
});
