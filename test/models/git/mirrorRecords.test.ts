import { Readable } from 'node:stream';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { purgeDrive } from '../../../models/drive/purge.ts';
import { removeDoomed } from '../../../models/drive/removeObjects.ts';
import { createMirrorRecords } from '../../../models/git/mirrorRecords.ts';
import { newId } from '../../../models/ids.ts';
import { buildBucket, type TestBucket } from '../../builders/drive.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
let bucket: TestBucket;
let store: ObjectStore;
const quotaBytes = 100;

beforeAll(async () => {
  bucket = await buildBucket();
  environment = await createTestEnvironment({ ATRIUM_S3_BUCKET: bucket.name });
  store = new ObjectStore(environment.config.storage);
});
afterAll(async () => {
  store.close();
  bucket.client.destroy();
  await environment.close();
});

/** A repository of a space of its own, whose first bundle is planned. */
async function plan(bytes = 10) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const ref = { spaceId: space.id, itemId: newId('driveItem') };
  await database.pool.query(
    `INSERT INTO git_repositories (item_id, space_id, computer_id, tree_path, url, operation_id, status, status_at,
                                   version, created_by, created_at)
     VALUES (?, ?, ?, 'a', 'https://git.example.com/a.git', 'op_1', 'cloning', NOW(3), 0, ?, NOW(3))`,
    [ref.itemId, ref.spaceId, newId('computer'), user.id],
  );
  const records = createMirrorRecords({ database, store, quotaBytes });
  const bundle = { version: 1, objectKey: newId('driveItem'), bytes };
  const planned = await records.plan(ref, bundle);
  return {
    ref,
    planned,
    write: () =>
      store.write(bundle.objectKey, Readable.from([Buffer.alloc(bytes)]), {
        fileName: 'a',
        maxBytes: bytes,
        reserve: async () => undefined,
      }),
    save: (version = 1) =>
      records.save(ref, {
        version,
        manifest: { head: 'refs/heads/main', refs: {}, shallow: [], filter: null },
        bundle: { ...bundle, version },
        replacesAll: true,
      }),
    isStored: async () => (await bucket.keys()).includes(bundle.objectKey),
    state: async () => (await driveModels(database).DriveObject.findByPk(bundle.objectKey))?.state,
    used: () => driveModels(database).Drive.usedBytesOf(ref.spaceId),
  };
}

test('a bundle is counted from when it is planned, once, and stays when it is saved', async () => {
  const { planned, write, save, isStored, state, used } = await plan();
  expect([await state(), await used()]).toEqual(['arriving', 10]);
  await write();
  expect([await save(), await save()]).toEqual([true, true]);
  await planned[Symbol.asyncDispose]();
  expect([await state(), await used(), await isStored()]).toEqual(['kept', 10, true]);
});

test('one for which there is no room is refused before it is stored', async () => {
  await expect(plan(quotaBytes + 1)).rejects.toMatchObject({ kind: 'tooLarge', code: 'QUOTA_EXCEEDED' });
});

test.each([
  ['is not saved', async () => undefined],
  ['comes too late', ({ save }: { save: (version: number) => Promise<boolean> }) => save(7)],
])('one that %s goes, with its bytes', async (_what, end) => {
  const { planned, write, save, isStored, state, used } = await plan();
  await write();
  expect(await end({ save })).not.toBe(true);
  await planned[Symbol.asyncDispose]();
  expect([await state(), await used(), await isStored()]).toEqual([undefined, 0, false]);
});

test('one that arrives after its space is gone goes too', async () => {
  const { ref, planned, write, save, isStored, state } = await plan();
  await purgeDrive(environment.database, ref.spaceId, () => undefined);
  await removeDoomed({ database: environment.database, store }, { spaceId: ref.spaceId });
  await environment.database.pool.query('UPDATE spaces SET deleted_at = NOW(3) WHERE id = ?', [ref.spaceId]);
  await write();
  await expect(save()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await planned[Symbol.asyncDispose]();
  expect([await state(), await isStored()]).toEqual([undefined, false]);
});
