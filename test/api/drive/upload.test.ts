import { createHash, randomBytes } from 'node:crypto';
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

/** POST …/drive/upload. Uploads that break off, lie or are malformed are in brokenUploads.test.ts. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive({ ATRIUM_DRIVE_MAX_FILE_MIB: '20', ATRIUM_DRIVE_QUOTA_MIB: '48' });
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

const mebibyte = 1_048_576;
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');

test('The upload of one file returns the four fields of the interface, and its name and hash', async () => {
  const response = await drive.upload({ path: '/reports/' }, { bytes: '# Report\n', name: 'report.md' });
  expect(response.status).toBe(200);
  const body = (await response.json()) as UploadBody;
  expect(body).toMatchObject({
    containerId: 'drive',
    path: '/reports/report.md',
    size: 9,
    contentType: 'text/markdown',
    name: 'report.md',
    sha256: sha256('# Report\n'),
    etag: `"${sha256('# Report\n')}"`,
  });
  const { files, ...first } = body;
  expect(files).toEqual([first]);
  expect(await drive.content(body.id)).toBe('# Report\n');
  await expectNoOrphans(product, user.spaceId);
});

test.each([
  ['no path: the root, under its own name', undefined, 'a.bin', '/a.bin'],
  ['the root', '/', 'a.bin', '/a.bin'],
  ['a folder that is not there yet', '/new/deep/', 'a.bin', '/new/deep/a.bin'],
  ['a folder that is there, without a slash', '/here', 'a.bin', '/here/a.bin'],
  ['a path of its own', '/b/c.txt', 'a.bin', '/b/c.txt'],
  ['slashes too many', '//b///c.txt', 'a.bin', '/b/c.txt'],
  ['a name of any script', '/Ünïcode/日本語 😀.txt', 'a.bin', '/Ünïcode/日本語 😀.txt'],
])('An upload goes to %s', async (_name, path, name, expected) => {
  await drive.folder('/here');
  const response = await drive.upload(path === undefined ? {} : { path }, { bytes: 'x', name });
  expect(await response.json()).toMatchObject({ path: expected });
});

test('Several files are stored, each with the fields before it', async () => {
  const form = new FormData();
  form.append('path', '/one/');
  form.append('file', new Blob(['1']), 'a.txt');
  form.append('file', new Blob(['2']), 'b.txt');
  form.append('path', '/two.txt');
  form.append('file', new Blob(['3']), 'c.txt');
  const response = await drive.send('POST', '/upload', form);
  const body = (await response.json()) as UploadBody;
  expect(body.path).toBe('/one/a.txt');
  expect(body.files.map(({ path }) => path)).toEqual(['/one/a.txt', '/one/b.txt', '/two.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test('If one of several files is refused, none is stored', async () => {
  await drive.put('/taken.txt');
  const form = formOf({ path: '/' }, [
    { bytes: '1', name: 'a.txt' },
    { bytes: '2', name: 'taken.txt' },
  ]);
  const response = await drive.send('POST', '/upload', form);
  expect([response.status, (await problemOf(response)).code]).toEqual([409, 'NAME_TAKEN']);
  expect(await drive.names()).toEqual(['taken.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test.each([
  ['plain text', 'x.bin', 'just words', 'text/plain'],
  [
    'a PNG that says it is text',
    'x.txt',
    Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]),
    'image/png',
  ],
  ['HTML that says it is an image', 'x.png', ' <!-- hi --><!DOCTYPE html><script>1</script>', 'text/html'],
  [
    'SVG that says it is text',
    'x.txt',
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>',
    'image/svg+xml',
  ],
  ['JSON by its name', 'x.json', '{"a":1}', 'application/json'],
  ['a PDF', 'x', '%PDF-1.7\n', 'application/pdf'],
  ['bytes', 'x.txt', Uint8Array.from([0, 1, 2, 255]), 'application/octet-stream'],
  ['nothing', 'x.csv', '', 'text/csv'],
])('The content type is told from the bytes: %s', async (_name, name, bytes, expected) => {
  const response = await drive.upload({ path: '/' }, { bytes, name, type: 'application/x-lie' });
  expect(await response.json()).toMatchObject({ contentType: expected, size: Buffer.byteLength(bytes) });
});

test('A taken name is refused, numbered, or replaced, which makes a version', async () => {
  const first = await drive.put('/a.txt', 'one');
  const refused = await drive.upload({ path: '/a.txt' }, { bytes: 'two' });
  expect([refused.status, (await problemOf(refused)).code]).toEqual([409, 'NAME_TAKEN']);
  expect(await drive.put('/a.txt', 'two', 'rename')).toMatchObject({ path: '/a (2).txt' });
  expect(await drive.put('/a.txt', 'three', 'rename')).toMatchObject({ path: '/a (3).txt' });
  const replaced = await drive.put('/a.txt', 'four', 'replace');
  expect(replaced).toMatchObject({ id: first.id, path: '/a.txt', sha256: sha256('four') });
  expect(await drive.item(first.id)).toMatchObject({ version: 2 });
  await drive.folder('/folder');
  for (const onConflict of ['error', 'replace']) {
    // A file cannot have the name of a folder beside it.
    const response = await drive.upload({ path: '/', onConflict }, { bytes: 'x', name: 'folder' });
    expect([response.status, (await problemOf(response)).code]).toEqual([409, 'NAME_TAKEN']);
  }
  await expectNoOrphans(product, user.spaceId);
});

test('Names are compared in their normal form, and kept as given', async () => {
  await drive.put('/caf\u00e9.txt');
  const response = await drive.upload({ path: '/cafe\u0301.txt' }, { bytes: 'x' });
  expect(response.status).toBe(409);
  const decomposed = await drive.put('/re\u0301sume\u0301.txt');
  expect(decomposed.path).toBe('/re\u0301sume\u0301.txt');
  expect(await drive.get(`/items?path=${encodeURIComponent('/r\u00e9sum\u00e9.txt')}`)).toMatchObject({
    data: [{ id: decomposed.id }],
  });
  await drive.put('/CAF\u00c9.txt');
});

test('With If-Match, an upload replaces only the content that its sender knows', async () => {
  const first = await drive.put('/a.txt', 'one');
  const form = () => formOf({ path: '/a.txt', onConflict: 'replace' }, [{ bytes: 'two' }]);
  const second = await drive.send('POST', '/upload', form(), { 'if-match': first.etag });
  expect(second.status).toBe(200);
  const stale = await drive.send('POST', '/upload', form(), { 'if-match': first.etag });
  expect([stale.status, (await problemOf(stale)).code]).toEqual([412, 'ETAG_MISMATCH']);
  const absent = await drive.send('POST', '/upload', formOf({ path: '/b.txt' }, [{ bytes: 'x' }]), { 'if-match': '*' });
  expect(absent.status).toBe(412);
});

test('A large file is stored in parts and whole, and leaves no part behind', async () => {
  const bytes = new Uint8Array(randomBytes(19 * mebibyte + 7));
  const body = await drive.put('/large.bin', bytes);
  expect(body).toMatchObject({ size: bytes.length, sha256: sha256(bytes) });
  const response = await drive.send('GET', `/items/${body.id}/content`);
  expect(sha256(new Uint8Array(await response.arrayBuffer()))).toBe(body.sha256);
  await expectNoOrphans(product, user.spaceId);
});

test('413 for a file that is too large, and for a full space, and nothing is left of either', async () => {
  const tooLarge = await drive.upload({ path: '/big.bin' }, { bytes: new Uint8Array(20 * mebibyte + 1) });
  expect([tooLarge.status, (await problemOf(tooLarge)).code]).toEqual([413, 'FILE_TOO_LARGE']);
  const twenty = new Uint8Array(20 * mebibyte);
  await drive.put('/a.bin', twenty);
  await drive.put('/b.bin', twenty);
  const full = await drive.upload({ path: '/c.bin' }, { bytes: new Uint8Array(9 * mebibyte) });
  expect([full.status, (await problemOf(full)).code]).toEqual([413, 'QUOTA_EXCEEDED']);
  // Another space still has room.
  await driveOf(product, await product.user()).put('/c.bin', new Uint8Array(9 * mebibyte));
  expect(await drive.names()).toEqual(['a.bin', 'b.bin']);
  expect(await driveModels(product.environment.database).Drive.usedBytesOf(user.spaceId)).toBe(40 * mebibyte);
  await expectNoOrphans(product, user.spaceId);
});

test('403 for a viewer who uploads, 404 for a stranger, and 401 without a token', async () => {
  const [viewer, stranger] = [await product.user(), await product.user()];
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  const as = (token: string) => driveOf(product, { token, spaceId: user.spaceId }).upload({}, { bytes: 'x' });
  expect((await as(viewer.token)).status).toBe(403);
  expect((await as(stranger.token)).status).toBe(404);
  expect((await as('nonsense')).status).toBe(401);
  expect(await drive.names()).toEqual([]);
  await expectNoOrphans(product, user.spaceId);
});
