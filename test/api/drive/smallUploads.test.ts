import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  formOf,
  problemOf,
  type TestDrive,
  type UploadBody,
} from '../../builders/drive.ts';

/**
 * Small files in a folder that was used lately: their objects get rows from the reserve, they share commits, and what
 * is remembered of their folder is only a hint.
 */
const kibibyte = 1_024;
const quotaBytes = 1_024 * kibibyte;
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive({ ATRIUM_DRIVE_QUOTA_MIB: '1' });
}, 240_000);
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

const objects = () => driveModels(product.environment.database).DriveObject;
const statusesOf = (responses: Response[]) => responses.map(({ status }) => status).sort();

test('A small file gets a row from the reserve, and counts once it is there', async () => {
  await drive.put('/in/first.txt', 'first');
  await drive.put('/in/second.txt', 'second');
  const reserved = (await objects().findAll({ where: { spaceId: '' } })).map(({ objectKey }) => objectKey);
  expect(reserved.length).toBeGreaterThan(0);
  for (let n = 0; n < 3; n++) await drive.put(`/in/${n}.txt`, 'more');
  const kept = (await objects().findAll({ where: { spaceId: user.spaceId } })).map(({ objectKey }) => objectKey);
  expect(kept.filter((key) => reserved.includes(key))).toHaveLength(3);
  expect(await drive.get('')).toMatchObject({ usedBytes: 5 + 6 + 3 * 4 });
  await expectNoOrphans(product, user.spaceId);
});

test('Seventy simultaneous files each have their own content, are found by their words, and count once', async () => {
  await drive.put('/in/deep/first.txt', 'first');
  const names = Array.from({ length: 70 }, (_, n) => `file${n}.txt`);
  const made = await Promise.all(names.map((name) => drive.put(`/in/deep/${name}`, `text of ${name}`)));
  for (const [n, { id, path, sha256, size }] of made.entries()) {
    const item = await drive.item(id);
    expect(item).toMatchObject({ path: `/in/deep/${names[n]}`, sha256, size, version: 1 });
    expect(path).toBe(item.path);
    if (n % 10 === 0) expect(await drive.content(id)).toBe(`text of ${names[n]}`);
  }
  const found = await drive.get<{ data: { id: string }[] }>('/search?q=file63&in=text');
  expect(found.data.map(({ id }) => id)).toEqual([made[63]?.id]);
  const [folder] = (await drive.get<{ data: { childCount: number }[] }>('/items?path=/in')).data;
  expect(folder?.childCount).toBe(71);
  await expectNoOrphans(product, user.spaceId);
});

test('In a race for the last bytes, exactly the files that fit are stored', async () => {
  await drive.put('/first', new Uint8Array(quotaBytes - 3 * 100 * kibibyte));
  await drive.put('/second', new Uint8Array(10));
  const bytes = new Uint8Array(99 * kibibyte);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => drive.upload({ path: `/race-${n}` }, { bytes })),
  );
  expect(statusesOf(answers)).toEqual([...Array(3).fill(200), ...Array(9).fill(413)]);
  const refused = answers.find(({ status }) => status === 413) as Response;
  expect((await problemOf(refused)).code).toBe('QUOTA_EXCEEDED');
  expect(await drive.names()).toHaveLength(5);
  await expectNoOrphans(product, user.spaceId);
});

test.each([
  ['error', [200, ...Array(9).fill(409)], 2],
  ['rename', Array(10).fill(200), 11],
  ['replace', Array(10).fill(200), 2],
])('Ten uploads race for one name with onConflict %s', async (onConflict, statuses, files) => {
  await drive.put('/first.txt', 'first');
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => drive.upload({ path: '/same.txt', onConflict }, { bytes: `${n}` })),
  );
  expect(statusesOf(answers)).toEqual(statuses);
  const names = await drive.names();
  expect([names.length, new Set(names).size]).toEqual([files, files]);
  await expectNoOrphans(product, user.spaceId);
});

test('Among many files, only the one with a taken name fails', async () => {
  await drive.put('/taken.txt', 'first');
  const names = ['a', 'b', 'taken', 'c', 'd'];
  const answers = await Promise.all(names.map((name) => drive.upload({ path: `/${name}.txt` }, { bytes: name })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 409, 200, 200]);
  await expectNoOrphans(product, user.spaceId);
});

test.each<[string, (folderId: string) => Promise<unknown>]>([
  ['moved', (id) => drive.send('PATCH', `/items/${id}`, { path: '/elsewhere/above' })],
  ['renamed', (id) => drive.send('PATCH', `/items/${id}`, { name: 'renamed' })],
  ['put into the trash', (id) => drive.send('DELETE', `/items/${id}`)],
  ['removed for good', (id) => drive.send('DELETE', `/items/${id}?permanent=true`)],
])('An upload to the path of a folder that was %s makes a new folder', async (_name, change) => {
  await drive.folder('/elsewhere');
  await drive.put('/above/in/first.txt', 'first');
  await drive.put('/above/in/second.txt', 'second');
  const [above] = (await drive.get<{ data: { id: string; name: string }[] }>('/items')).data;
  expect(above?.name).toBe('above');
  await change(above?.id ?? '');
  const file = await drive.put('/above/in/third.txt', 'third');
  expect(await drive.item(file.id)).toMatchObject({ path: '/above/in/third.txt' });
  expect(await drive.names('/above/in')).toEqual(['third.txt']);
});

test('A file that is sent to the path of a folder goes into it, and the file’s own name tells the type', async () => {
  await drive.put('/first.txt', 'first');
  await drive.folder('/data');
  await drive.folder('/data.json');
  const sent = async (path: string) =>
    (await (await drive.upload({ path }, { bytes: '{}', name: 'x.json' })).json()) as UploadBody;
  expect(await sent('/data')).toMatchObject({ path: '/data/x.json', contentType: 'application/json' });
  expect(await sent('/data.json')).toMatchObject({ path: '/data.json/x.json', contentType: 'application/json' });
  await expectNoOrphans(product, user.spaceId);
});

test('Several files in one body are all stored, or none', async () => {
  await drive.put('/in/first.txt', 'first');
  const send = (names: string[]) =>
    drive.send(
      'POST',
      '/upload',
      formOf(
        { path: '/in/' },
        names.map((name) => ({ bytes: name, name })),
      ),
    );
  expect((await send(['a.txt', 'b.txt'])).status).toBe(200);
  expect((await send(['c.txt', 'b.txt', 'd.txt'])).status).toBe(409);
  expect(await drive.names('/in')).toEqual(['a.txt', 'b.txt', 'first.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test('Simultaneous uploads with the same Idempotency-Key make one file with one answer', async () => {
  await drive.put('/first.txt', 'first');
  const send = () =>
    drive.send('POST', '/upload', formOf({ path: '/once.txt', onConflict: 'rename' }, [{ bytes: 'x' }]), {
      'idempotency-key': 'once',
    });
  const together = await Promise.all([send(), send(), send()]);
  const [answer] = await Promise.all(together.filter(({ status }) => status === 200).map((each) => each.json()));
  expect(together.every(({ status }) => status === 200 || status === 409)).toBe(true);
  const again = await send();
  expect([again.status, await again.json()]).toEqual([200, answer]);
  expect(await drive.names()).toEqual(['first.txt', 'once.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test('a body without a length is counted before it is stored', async () => {
  await drive.put('/first.txt', 'first');
  const [head, tail] = [
    '--limit\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n',
    '\r\n--limit--',
  ];
  const response = await fetch(`${product.url}/api/spaces/${user.spaceId}/drive/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'multipart/form-data; boundary=limit' },
    body: ReadableStream.from([head, 'x'.repeat(quotaBytes), tail].map((text) => Buffer.from(text))),
    duplex: 'half',
  } as RequestInit);
  expect(response.status).toBe(413);
  expect(await drive.names()).toEqual(['first.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test('A deleted thread takes no more files, although its folder is remembered', async () => {
  const thread = await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
  const { id: threadId } = (await thread.json()) as { id: string };
  const send = (name: string) =>
    drive.send('POST', `/api/spaces/${user.spaceId}/thread-files`, formOf({ threadId }, [{ bytes: 'x', name }]));
  expect((await send('a.txt')).status).toBe(201);
  expect((await send('b.txt')).status).toBe(201);
  await user.fetch(`/api/threads/${threadId}`, { method: 'DELETE' });
  expect((await send('c.txt')).status).toBe(404);
});
