import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { newId } from '../../../base/ids.ts';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { purgeDrive } from '../../../models/drive/purge.ts';
import { removeDoomed } from '../../../models/drive/removeObjects.ts';
import { createMirrorRecords } from '../../../models/git/mirrorRecords.ts';
import { buildBucket, type TestBucket } from '../../builders/drive.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
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

/** A repository in its own space, whose first bundle is planned. */
async function plan(bytes = 10) {
  const { database } = environment;
  const ref = await buildRepositoryRow(environment);
  const records = createMirrorRecords({ database, store, quotaBytes });
  const bundle = { version: 1, objectKey: newId('driveItem'), bytes };
  const planned = await records.plan(ref, bundle, { replacesAll: true });
  return {
    ref,
    records,
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
        bundle: { ...bundle, version, sha256: createHash('sha256').update(Buffer.alloc(bytes)).digest() },
        replacesAll: true,
      }),
    isStored: async () => (await bucket.keys()).includes(bundle.objectKey),
    state: async () => (await driveModels(database).DriveObject.findByPk(bundle.objectKey))?.state,
    used: () => driveModels(database).Drive.usedBytesOf(ref.spaceId),
  };
}

test('A bundle counts against the quota once, as soon as it is planned, and is kept when it is saved', async () => {
  const { planned, write, save, isStored, state, used } = await plan();
  expect([await state(), await used()]).toEqual(['arriving', 10]);
  await write();
  expect([await save(), await save()]).toEqual([true, true]);
  await planned[Symbol.asyncDispose]();
  expect([await state(), await used(), await isStored()]).toEqual(['kept', 10, true]);
});

test('A bundle that exceeds the quota is refused before it is stored', async () => {
  await expect(plan(quotaBytes + 1)).rejects.toMatchObject({ kind: 'tooLarge', code: 'QUOTA_EXCEEDED' });
});

test.each([
  ['is not saved', async () => undefined],
  ['comes too late', ({ save }: { save: (version: number) => Promise<boolean> }) => save(7)],
])('A bundle that %s is removed with its bytes', async (_what, end) => {
  const { ref, planned, write, save, isStored, state, used } = await plan();
  await write();
  expect(await end({ save })).not.toBe(true);
  await planned[Symbol.asyncDispose]();
  // The row stays for a while, because the sent bytes may reach the store late.
  expect([await state(), await used(), await isStored()]).toEqual(['doomed', 0, false]);
  await write();
  const { database } = environment;
  await database.pool.query('UPDATE drive_objects SET lease_expires_at = ? WHERE space_id = ?', [
    new Date(0),
    ref.spaceId,
  ]);
  await removeDoomed({ database, store });
  expect([await state(), await used(), await isStored()]).toEqual([undefined, 0, false]);
});

test('A bundle that arrives after its space was purged is removed', async () => {
  const { ref, planned, write, save, isStored, state } = await plan();
  await purgeDrive(environment.database, ref.spaceId, () => undefined);
  await removeDoomed({ database: environment.database, store }, { spaceId: ref.spaceId });
  await environment.database.pool.query('UPDATE spaces SET deleted_at = NOW(3) WHERE id = ?', [ref.spaceId]);
  await write();
  await expect(save()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await planned[Symbol.asyncDispose]();
  expect([await state(), await isStored()]).toEqual([undefined, false]);
});

test('States that only moved refs are forgotten after the next one, and states with bundles are kept', async () => {
  const { ref, records, planned, write, save } = await plan();
  await write();
  await save();
  await planned[Symbol.asyncDispose]();
  const move = (version: number) => {
    const manifest = { head: `refs/heads/${version}`, refs: {}, shallow: [], filter: null };
    return records.save(ref, { version, manifest, bundle: null, replacesAll: false });
  };
  expect([await move(2), await move(3), await move(4)]).toEqual([true, true, true]);
  const sql = 'SELECT version, manifest IS NULL AS isBehind FROM git_bundles WHERE item_id = ? ORDER BY version';
  const [rows] = await environment.database.pool.query(sql, [ref.itemId]);
  expect(rows).toEqual([
    { version: 1, isBehind: 1 },
    { version: 4, isBehind: 0 },
  ]);
  expect(await records.current(ref)).toMatchObject({
    version: 4,
    manifest: { head: 'refs/heads/4' },
    bundles: [{ version: 1 }],
  });
});
