import { createHash, randomBytes } from 'node:crypto';
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { checkContents } from '../../../bin/support/checkContents.ts';
import { createContentFindings } from '../../../models/drive/findings.ts';
import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildDrive, driveOf, type ItemBody, type ItemPage, problemOf, type TestDrive } from '../../builders/drive.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Content that the store has changed or lost is reported, and never served as if it were whole. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive(hurriedSweeper);
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

const small = new Uint8Array(randomBytes(5_000));
/** Larger than the part that is read before the answer begins, and than the window in which a stream is checked. */
const large = new Uint8Array(randomBytes(2_500_000));

async function put(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<{ id: string; key: string }> {
  const { id } = await drive.put(path, bytes);
  const item = await driveModels(product.environment.database).DriveItem.findOne({
    where: { id },
    rejectOnEmpty: true,
  });
  return { id, key: item.objectKey ?? '' };
}
const overwrite = (key: string, bytes: Uint8Array) =>
  product.bucket.client.send(new PutObjectCommand({ Bucket: product.bucket.name, Key: key, Body: bytes }));
const lose = (key: string) =>
  product.bucket.client.send(new DeleteObjectCommand({ Bucket: product.bucket.name, Key: key }));
const read = (id: string, headers: Record<string, string> = {}) =>
  drive.send('GET', `/items/${id}/content`, undefined, headers);
const damageOf = async (id: string) => (await drive.get<ItemBody>(`/items/${id}`)).damage;
async function refusal(response: Response): Promise<[number, string]> {
  return [response.status, (await problemOf(response)).code];
}

test('A damaged small file is refused before its first byte, in every way to read it, and the item says so', async () => {
  const { id, key } = await put('/a.bin', small);
  const neighbour = await put('/b.bin', small);
  await overwrite(key, new Uint8Array(small.length));
  expect(await damageOf(id)).toBeUndefined();
  expect(await refusal(await read(id))).toEqual([502, 'CONTENT_DAMAGED']);
  expect(await refusal(await read(id))).toEqual([502, 'CONTENT_DAMAGED']);
  expect(await refusal(await read(id, { range: 'bytes=0-9' }))).toEqual([502, 'CONTENT_DAMAGED']);
  expect(await refusal(await drive.send('GET', `/items/${id}/url`))).toEqual([502, 'CONTENT_DAMAGED']);
  expect(await damageOf(id)).toBe('damaged');
  const { data } = await drive.get<ItemPage>('/items?path=/');
  expect(data.map(({ name, damage }) => [name, damage])).toEqual([
    ['a.bin', 'damaged'],
    ['b.bin', undefined],
  ]);
  expect((await read(neighbour.id)).status).toBe(200);
  const stranger = driveOf(product, await product.user());
  expect((await stranger.send('GET', `/api/spaces/${user.spaceId}/drive/items/${id}/content`)).status).toBe(404);
});

test('A damaged large file breaks off before its end', async () => {
  const { id, key } = await put('/large.bin', large);
  const oneOff = large.slice();
  oneOff[1_000] = (oneOff[1_000] ?? 0) ^ 1;
  await overwrite(key, oneOff);
  // The damage is not known yet.
  expect((await read(id, { range: 'bytes=0-9' })).status).toBe(206);
  const response = await read(id);
  await expect(response.arrayBuffer()).rejects.toThrow();
  await waitFor('the damage to be reported', async () => (await damageOf(id)) === 'damaged');
  expect(await refusal(await read(id, { range: 'bytes=0-9' }))).toEqual([502, 'CONTENT_DAMAGED']);
  await overwrite(key, large.slice(0, 2_000_000));
  await expect(read(id).then((shorter) => shorter.arrayBuffer())).rejects.toThrow();
});

test('Content that the store has lost is reported in the same way', async () => {
  const files = [await put('/small.bin', small), await put('/large.bin', large)];
  for (const { id, key } of files) {
    await lose(key);
    expect(await refusal(await read(id))).toEqual([502, 'CONTENT_MISSING']);
    expect(await damageOf(id)).toBe('missing');
    expect(await refusal(await read(id, { range: 'bytes=0-9' }))).toEqual([502, 'CONTENT_MISSING']);
  }
});

test.each([small, large])('A whole read clears the report once the store has the content again', async (bytes) => {
  const { id, key } = await put('/a.bin', bytes);
  await lose(key);
  expect((await read(id)).status).toBe(502);
  await overwrite(key, bytes);
  const hash = createHash('sha256').update(Buffer.from(await (await read(id)).arrayBuffer()));
  expect(hash.digest()).toEqual(createHash('sha256').update(bytes).digest());
  await waitFor('the report to be cleared', async () => (await damageOf(id)) === undefined);
  expect((await read(id, { range: 'bytes=0-9' })).status).toBe(206);
});

test('A replaced file is sound, and its earlier version stays damaged', async () => {
  const { id, key } = await put('/a.bin', small);
  await lose(key);
  expect((await read(id)).status).toBe(502);
  await drive.put('/a.bin', large, 'replace');
  expect(await damageOf(id)).toBeUndefined();
  const { data } = await drive.get<{ data: { version: number; damage?: string }[] }>(`/items/${id}/versions`);
  expect(data.map(({ version, damage }) => [version, damage])).toEqual([
    [2, undefined],
    [1, 'missing'],
  ]);
});

test('After an unclean end, the sweeper checks the latest contents, and doctor names the damaged ones', async () => {
  const { database, config } = product.environment;
  const findings = createContentFindings(database);
  const sound = await put('/sound.bin', large);
  const damaged = await put('/damaged.bin', large);
  const missing = await put('/missing.bin', small);
  await overwrite(damaged.key, new Uint8Array(large.length));
  await lose(missing.key);
  expect(await findings.suspectLatest()).toBeGreaterThanOrEqual(3);
  // Suspect content is checked before it is served by a link.
  expect(await refusal(await drive.send('GET', `/items/${damaged.id}/url`))).toEqual([502, 'CONTENT_DAMAGED']);
  await waitFor('all suspects to be looked at', async () => (await findings.suspects(1)).length === 0);
  expect(await Promise.all([sound, damaged, missing].map(({ id }) => damageOf(id)))).toEqual([
    undefined,
    'damaged',
    'missing',
  ]);
  const { state, detail } = await checkContents(config);
  expect(state).toBe('wrong');
  expect(detail).toContain(`${damaged.id} (${user.spaceId}, damaged)`);
  expect(detail).toContain(`${missing.id} (${user.spaceId}, missing)`);
  const metrics = await (await fetch(`${product.url}/metrics`)).text();
  expect(metrics).toMatch(/atrium_damaged_contents\{finding="missing"\} [1-9]/);
  // Suspicion does not remove what is known already.
  await findings.suspectLatest();
  expect(await damageOf(missing.id)).toBe('missing');
});
