import { createHash, randomBytes } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { DriveDeps } from '../../../activities/drive/deps.ts';
import { createDriveSweeps } from '../../../activities/drive/sweeps.ts';
import { createSweepTogether } from '../../../activities/sweepTogether.ts';
import { checkContents } from '../../../bin/support/checkContents.ts';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { transaction } from '../../../models/database/database.ts';
import { newObjectKey } from '../../../models/drive/driveObject.ts';
import { createContentFindings, type Finding } from '../../../models/drive/findings.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { type StoreGate, startStoreGate } from '../../support/storeGate.ts';

/** Sweeps over stored objects that are, or may be, damaged or missing. */
const logger = createLogger({ level: 'silent' });
const dayMs = 24 * 3_600_000;
let environment: TestEnvironment;
let gate: StoreGate;
let store: ObjectStore;
let spaceId: string;
let findings: ReturnType<typeof createContentFindings>;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const identity = await buildIdentity(environment);
  spaceId = (await buildSpace(identity, (await buildUser(identity)).user.id)).space.id;
  gate = await startStoreGate(stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  findings = createContentFindings(environment.database);
  store = new ObjectStore({ ...environment.config.storage, endpoint: gate.url }, findings);
});
afterAll(async () => {
  store.close();
  await gate.stop();
  await environment.close();
});
beforeEach(async () => {
  gate.unreadable.clear();
  await environment.database.pool.query('UPDATE drive_objects SET finding = NULL, found_at = NULL');
});

const overwrite = (key: string, bytes: Uint8Array) =>
  store.client.send(new PutObjectCommand({ Bucket: store.bucket, Key: key, Body: bytes }));

/** A kept object of `size` random bytes, and its content. */
async function keep(size: number): Promise<{ key: string; bytes: Buffer }> {
  const { database } = environment;
  const { DriveObject } = driveModels(database);
  const [key, bytes] = [newObjectKey(), randomBytes(size)];
  await DriveObject.begin(database, { objectKey: key, spaceId, bytes: size, quotaBytes: 1e9 });
  await overwrite(key, bytes);
  await transaction(database, (tx) => DriveObject.keep(key, createHash('sha256').update(bytes).digest(), tx));
  return { key, bytes };
}

async function find(key: string, finding: Finding, { ago = 0, hash = true } = {}): Promise<void> {
  const sql = `UPDATE drive_objects SET finding = ?, found_at = ?${hash ? '' : ', sha256 = NULL'} WHERE object_key = ?`;
  await environment.database.pool.query(sql, [finding, new Date(Date.now() - ago), key]);
}
const findingOf = async (key: string) => (await findings.find(key))?.finding;

/** One round of the sweeper. By default its time is over after the first object. */
function sweep({ budgetMs = 1 } = {}): Promise<unknown> {
  const { database, config } = environment;
  const { sweepContents } = createDriveSweeps({ database, config, storage: store } as DriveDeps);
  const round = createSweepTogether({ database, logger, budgetMs, patienceMs: dayMs }, { sweepContents });
  return new MockActivityEnvironment().run(round);
}

test('Each round settles one object, even if that takes longer than the round may last', async () => {
  const objects = [await keep(20_000_000), await keep(20_000_000), await keep(20_000_000)];
  await findings.suspectLatest();
  const [, damaged] = objects;
  await overwrite(damaged?.key ?? '', Buffer.alloc(20_000_000));
  for (const _ of objects) await sweep();
  expect(await Promise.all(objects.map(({ key }) => findingOf(key)))).toEqual([null, 'damaged', null]);
});

test('An unreadable object does not hold up others and is checked again later', async () => {
  const [broken, larger] = [await keep(10), await keep(2_000_000)];
  for (const { key } of [broken, larger]) await find(key, 'suspect');
  gate.unreadable.add(broken.key);
  await sweep();
  await sweep();
  expect([await findingOf(broken.key), await findingOf(larger.key)]).toEqual(['suspect', null]);
  gate.unreadable.clear();
  await sweep();
  expect(await findingOf(broken.key)).toBeNull();
});

test('Unreadable suspects do not hold up the new check of old findings', async () => {
  const [broken, back] = [await keep(10), await keep(10)];
  gate.unreadable.add(broken.key);
  await find(broken.key, 'suspect');
  await find(back.key, 'missing', { ago: 2 * dayMs });
  await sweep();
  expect([await findingOf(broken.key), await findingOf(back.key)]).toEqual(['suspect', null]);
});

test('Findings are checked again after a day, and an object that was put back is served again', async () => {
  const [back, restored, damaged, young] = [await keep(10), await keep(10), await keep(10), await keep(10)];
  await find(back.key, 'missing', { ago: 2 * dayMs });
  await find(restored.key, 'damaged', { ago: 2 * dayMs });
  await find(damaged.key, 'damaged', { ago: 2 * dayMs });
  await find(young.key, 'missing');
  await overwrite(damaged.key, randomBytes(10));
  await expect(store.read(back.key, { start: 0, end: 1 })).rejects.toMatchObject({ code: 'CONTENT_MISSING' });
  const report = { looked: 3, damaged: 1, missing: 0, failed: 0 };
  expect(await sweep({ budgetMs: dayMs })).toEqual({ sweepContents: report });
  expect(await Promise.all([back, restored, damaged, young].map(({ key }) => findingOf(key)))).toEqual([
    null,
    null,
    'damaged',
    'missing',
  ]);
  await store.read(back.key, { start: 0, end: 1 });
  // The next check is due only a day later.
  expect(await sweep({ budgetMs: dayMs })).toMatchObject({ sweepContents: { looked: 0 } });
});

test('Doctor reports suspect and missing objects', async () => {
  const [suspect, missing] = [await keep(10), await keep(10)];
  await find(suspect.key, 'suspect');
  const left = 'still to be looked at after an unclean end or a restore: 1';
  const ok = { state: 'ok', detail: `none is known to be damaged or missing; ${left}` };
  expect(await checkContents(environment.config)).toMatchObject(ok);
  await find(missing.key, 'missing');
  const found = `0 damaged, 1 missing: ${missing.key} (${spaceId}, missing); ${left}`;
  expect(await checkContents(environment.config)).toMatchObject({
    state: 'wrong',
    detail: expect.stringContaining(found),
  });
});

test('100 partial reads of a suspect cost one whole read, even if the result cannot be stored', async () => {
  const { key, bytes } = await keep(8_000_000);
  await find(key, 'suspect');
  const away = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const config = { ...environment.config.storage, endpoint: gate.url };
  const other = new ObjectStore(config, { find: findings.find, note: away });
  const readPart = async () => (await (await other.read(key, { start: 5, end: 9 })).toArray()).join('');
  const parts = await Promise.all(Array.from({ length: 100 }, readPart));
  expect(parts).toEqual(parts.map(() => String(bytes.subarray(5, 10))));
  await readPart();
  expect(gate.wholeReads(key)).toBe(1);
  // The object becomes suspect again.
  await find(key, 'suspect');
  await overwrite(key, Buffer.alloc(8_000_000));
  await expect(readPart()).rejects.toMatchObject({ code: 'CONTENT_DAMAGED' });
  expect(gate.wholeReads(key)).toBe(2);
  other.close();
});

test('A readable object without a hash is no longer missing, but stays suspect', async () => {
  const [suspect, missing] = [await keep(2_000_000), await keep(10)];
  await find(suspect.key, 'suspect', { hash: false });
  await find(missing.key, 'missing', { hash: false });
  for (const { key, bytes } of [suspect, missing]) {
    expect(bytes.equals(Buffer.concat(await (await store.read(key)).toArray()))).toBe(true);
  }
  expect([await findingOf(suspect.key), await findingOf(missing.key)]).toEqual(['suspect', null]);
});
