import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { storeObjects } from '../../backup/make/objectsPart.ts';
import { Progress } from '../../backup/make/progress.ts';
import { Pace, type PartProgress } from '../../backup/pace.ts';
import { fromLines } from '../../backup/vault/lines.ts';
import type { ObjectEntry } from '../../backup/vault/manifests.ts';
import type { Vault } from '../../backup/vault/vault.ts';
import { newId } from '../../base/ids.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { buildVault } from '../builders/backups.ts';
import { buildBucket } from '../builders/drive.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// Objects of the bucket that are missing, and objects that an earlier attempt has copied.

let environment: TestEnvironment;
let storage: ObjectStore;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const bucket = await buildBucket();
  bucket.client.destroy();
  storage = new ObjectStore({ ...environment.config.storage, bucket: bucket.name });
});
afterAll(async () => {
  storage.close();
  await environment.close();
});

const { signal } = new AbortController();
const put = (table: string, row: object) => environment.database.pool.query(`INSERT INTO ${table} SET ?`, [row]);

async function buildObject(spaceId: string, state: string, content?: Buffer): Promise<string> {
  const key = randomBytes(20).toString('hex');
  const row = { object_key: key, space_id: spaceId, state, is_complete: state !== 'arriving', size: 100 };
  await put('drive_objects', { ...row, created_at: new Date() });
  const options = { fileName: 'object', maxBytes: 1_000_000, reserve: async () => undefined };
  if (content !== undefined) await storage.write(key, Readable.from([content]), options);
  return key;
}

const itemOf = (spaceId: string, key: string, id = newId('driveItem')) => {
  const now = new Date();
  const by = { created_by: 'usr_1', created_at: now, updated_by: 'usr_1', updated_at: now };
  const its = { id, space_id: spaceId, parent_id: spaceId, kind: 'file', is_file: 1 };
  return { ...its, name: id, name_key: id, object_key: key, size: 100, ...by };
};

async function keysIn(vault: Vault, stored: { content: ObjectEntry | { bytes: number; pieces: string[] } }) {
  const keys: string[] = [];
  for await (const { key } of fromLines<ObjectEntry>(vault.read(stored.content))) keys.push(key);
  return keys;
}

test('a missing object is reported with the file that needs it, and all others are backed up', async () => {
  const { vault } = await buildVault();
  const spaceId = newId('space');
  const there = await buildObject(spaceId, 'kept', Buffer.from('there'));
  const lost = await buildObject(spaceId, 'kept');
  const itemId = newId('driveItem');
  await put('drive_items', itemOf(spaceId, lost, itemId));
  // Such rows exist for minutes after a writer was killed. No file refers to them, so nothing is lost.
  await buildObject(spaceId, 'arriving');
  await buildObject(spaceId, 'doomed');
  // The rows of the backup may still refer to an object that is given up while the backup is made.
  const givenUp = await buildObject(spaceId, 'doomed', Buffer.from('given up'));
  const told: PartProgress[] = [];
  const pace = new Pace((progress) => told.push(progress));
  const stored = await storeObjects({
    vault,
    database: environment.database,
    storage,
    before: undefined,
    pace,
    signal,
  });
  expect(stored.count).toBe(2);
  expect(await keysIn(vault, stored)).toEqual([there, givenUp].toSorted());
  expect(stored.missing).toEqual({ count: 1, named: [{ key: lost, spaceId, owner: `the file ${itemId}` }] });
  expect(told[0]).toMatchObject({ part: 'Objects of the bucket', done: 0, secondsLeft: null });
  expect(told.at(-1)?.done).toBe(told.at(-1)?.total);
  expect(told.at(-1)?.done).toBeGreaterThan(0);
});

test('an object that any earlier attempt has copied is found by its key', async () => {
  const { vault } = await buildVault();
  const entryOf = (number: number) => ({ key: String(number).padStart(5, '0'), bytes: number, pieces: [] });
  const first = await Progress.open(vault);
  for (let number = 0; number < 2_000; number += 2) await first.note(entryOf(number));
  const second = await Progress.open(vault);
  for (let number = 1; number < 2_000; number += 2) await second.note(entryOf(number));
  const third = await Progress.open(vault);
  for (let number = 0; number < 2_000; number++) {
    expect(await third.find(entryOf(number).key)).toEqual(entryOf(number));
  }
  await Progress.forget(vault);
  expect(await (await Progress.open(vault)).find(entryOf(1).key)).toBeUndefined();
});
