import { createHash, randomBytes } from 'node:crypto';
import type { operations } from '../../../api/generated/types.gen.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { idempotencyModels } from '../../../models/operations/idempotency.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  type ItemBody,
  problemOf,
  type TestDrive,
} from '../../builders/drive.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Large files, whose parts the client sends straight to the object store. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive({ ...hurriedSweeper, ATRIUM_DRIVE_QUOTA_MIB: '100', ATRIUM_DRIVE_MAX_FILE_MIB: '60' });
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

type Upload = operations['createUpload']['responses'][201]['content']['application/json'];
type Part = Upload['parts'][number];
const mebibyte = 1_048_576;
const bytes = new Uint8Array(randomBytes(16 * mebibyte + 11));
const sha256 = createHash('sha256').update(bytes).digest('hex');

async function begin(path = '/large.bin', body: object = {}): Promise<Upload> {
  const response = await drive.send('POST', '/uploads', { path, size: bytes.length, ...body });
  expect(response.status).toBe(201);
  return (await response.json()) as Upload;
}

async function sendPart({ partSize }: Upload, { partNumber, size, url }: Part): Promise<void> {
  const at = (partNumber - 1) * partSize;
  expect((await fetch(url, { method: 'PUT', body: bytes.slice(at, at + size) })).status).toBe(200);
}

async function sendAll(upload: Upload): Promise<void> {
  for (const part of upload.parts) await sendPart(upload, part);
}

const complete = (upload: Pick<Upload, 'id'>, body?: object) =>
  drive.send('POST', `/uploads/${upload.id}/complete`, body);

test('A file that is sent in parts is a file like any other once it is completed', async () => {
  const upload = await begin('/a/large.txt');
  expect(upload).toMatchObject({ containerId: 'drive', path: '/a/large.txt', size: bytes.length, itemId: null });
  expect(upload.parts.map(({ partNumber, size }) => [partNumber, size])).toEqual([
    [1, 16 * mebibyte],
    [2, 11],
  ]);
  await sendAll(upload);
  const response = await complete(upload);
  expect(response.status).toBe(200);
  const item = (await response.json()) as ItemBody;
  expect(item).toMatchObject({
    path: '/a/large.txt',
    size: bytes.length,
    sha256,
    contentType: 'application/octet-stream',
  });
  expect(await drive.get(`/uploads/${upload.id}`)).toMatchObject({ itemId: item.id, parts: [] });
  await expectNoOrphans(product, user.spaceId);

  // As if the answer was lost: the client asks again, and gets the same file.
  const again = await complete(upload);
  expect([again.status, await again.json()]).toEqual([200, item]);
  const abort = await drive.send('DELETE', `/uploads/${upload.id}`);
  expect([abort.status, (await problemOf(abort)).code]).toEqual([409, 'UPLOAD_COMPLETED']);
  expect(await drive.names('/a')).toEqual(['large.txt']);
});

test('After an interruption, parts that have arrived need not be sent again', async () => {
  const upload = await begin();
  const [first, second] = upload.parts as [Part, Part];
  await sendPart(upload, second);
  const refused = await complete(upload);
  expect([refused.status, await problemOf(refused)]).toMatchObject([
    409,
    {
      code: 'UPLOAD_INCOMPLETE',
      detail: 'Missing parts: 1, such as 1. Upload them, and complete the upload again.',
    },
  ]);
  const now = await drive.get<Upload>(`/uploads/${upload.id}`);
  expect(now.parts.map(({ partNumber }) => partNumber)).toEqual([first.partNumber]);
  await sendAll(now);
  expect((await complete(upload)).status).toBe(200);
  await expectNoOrphans(product, user.spaceId);
});

test('A link takes only the part that it is for, in its full size', async () => {
  const upload = await begin();
  const [first, second] = upload.parts as [Part, Part];
  const response = await fetch(first.url, { method: 'PUT', body: bytes.slice(0, 100) });
  expect(response.status).toBe(403);
  const other = second.url.replace('partNumber=2', 'partNumber=3');
  expect((await fetch(other, { method: 'PUT', body: bytes.slice(0, second.size) })).status).toBe(403);
});

test('Pages of any origin can send a part by its link, and read its tag', async () => {
  const upload = await begin();
  const { url, size } = upload.parts[0] as Part;
  const origin = 'http://localhost:5173';
  const asked = await fetch(url, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'content-type' },
  });
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
  expect(asked.headers.get('access-control-allow-methods')).toContain('PUT');
  const sent = await fetch(url, { method: 'PUT', headers: { origin }, body: bytes.slice(0, size) });
  expect([sent.status, sent.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
  expect(sent.headers.get('access-control-expose-headers')).toContain('ETag');
});

test('Giving up an upload removes its parts and its bytes', async () => {
  const upload = await begin();
  await sendPart(upload, upload.parts[0] as Part);
  expect(await driveModels(product.environment.database).Drive.usedBytesOf(user.spaceId)).toBe(bytes.length);
  expect((await drive.send('DELETE', `/uploads/${upload.id}`)).status).toBe(204);
  for (const method of ['GET', 'DELETE']) {
    expect((await drive.send(method, `/uploads/${upload.id}`)).status).toBe(404);
  }
  expect((await complete(upload)).status).toBe(404);
  await waitFor(
    'the sweeper',
    async () => (await driveModels(product.environment.database).Drive.usedBytesOf(user.spaceId)) === 0,
  );
  await expectNoOrphans(product, user.spaceId);
});

test('The sweeper removes an abandoned upload when its time is over', async () => {
  const upload = await begin();
  await sendPart(upload, upload.parts[0] as Part);
  const past = new Date(Date.now() - 1_000);
  const { objectKey } = await driveModels(product.environment.database).DriveUpload.findByPk(upload.id, {
    rejectOnEmpty: true,
  });
  await driveModels(product.environment.database).DriveUpload.update({ expiresAt: past }, { where: { id: upload.id } });
  await driveModels(product.environment.database).DriveObject.update(
    { leaseExpiresAt: past },
    { where: { objectKey } },
  );
  const late = await complete(upload);
  expect([404, 410]).toContain(late.status);
  await waitFor(
    'the sweeper',
    async () => (await driveModels(product.environment.database).DriveObject.findByPk(objectKey))?.size === 0,
  );
  expect(await driveModels(product.environment.database).DriveUpload.findByPk(upload.id)).toBeNull();
  await expectNoOrphans(product, user.spaceId);
});

test('An upload whose name was taken meanwhile is refused, and can be completed under another name', async () => {
  const upload = await begin();
  await sendAll(upload);
  await drive.put('/large.bin', 'meanwhile');
  const refused = await complete(upload);
  expect([refused.status, (await problemOf(refused)).code]).toEqual([409, 'NAME_TAKEN']);
  expect(await drive.get<Upload>(`/uploads/${upload.id}`)).toMatchObject({ parts: [], itemId: null });
  const renamed = await complete(upload, { onConflict: 'rename' });
  expect([renamed.status, await renamed.json()]).toMatchObject([200, { path: '/large (2).bin', sha256 }]);
  await expectNoOrphans(product, user.spaceId);
});

test('If-Match from the beginning of an upload holds at its end', async () => {
  const file = await drive.put('/large.bin', 'one');
  const response = await drive.send(
    'POST',
    '/uploads',
    { path: '/large.bin', size: bytes.length, onConflict: 'replace' },
    { 'if-match': file.etag },
  );
  const upload = (await response.json()) as Upload;
  await sendAll(upload);
  await drive.put('/large.bin', 'two', 'replace');
  expect((await complete(upload)).status).toBe(412);
  expect(await drive.content(file.id)).toBe('two');
});

test('An upload is refused at its beginning for its size, for a full drive, or for its name', async () => {
  await drive.put('/taken');
  const cases: [object, number, string][] = [
    [{ path: '/a', size: 61 * mebibyte }, 413, 'FILE_TOO_LARGE'],
    [{ path: '/taken', size: 1 }, 409, 'NAME_TAKEN'],
    [{ path: '/', size: 1 }, 422, 'INVALID_NAME'],
    [{ path: '/a/../b', size: 1 }, 422, 'INVALID_NAME'],
    [{ path: '/a', size: 0 }, 400, 'INVALID_REQUEST'],
    [{ path: '/a', size: 1, containerId: 'thread:thr_none' }, 404, 'NOT_FOUND'],
  ];
  for (const [body, status, code] of cases) {
    const response = await drive.send('POST', '/uploads', body);
    expect([body, response.status, (await problemOf(response)).code]).toEqual([body, status, code]);
  }
  await begin('/a', { size: 60 * mebibyte });
  const full = await drive.send('POST', '/uploads', { path: '/b', size: 41 * mebibyte });
  expect([full.status, (await problemOf(full)).code]).toEqual([413, 'QUOTA_EXCEEDED']);
});

test('The same Idempotency-Key begins one upload, and no link is stored', async () => {
  const body = { path: '/large.bin', size: bytes.length };
  const send = () => drive.send('POST', '/uploads', body, { 'idempotency-key': 'one' });
  const first = (await (await send()).json()) as Upload;
  await sendPart(first, first.parts[0] as Part);
  const second = (await (await send()).json()) as Upload;
  expect(second.id).toBe(first.id);
  expect(second.parts.map(({ partNumber }) => partNumber)).toEqual([2]);
  expect(await driveModels(product.environment.database).DriveUpload.count({ where: { spaceId: user.spaceId } })).toBe(
    1,
  );
  expect(JSON.stringify(await idempotencyModels(product.environment.database).Idempotency.findAll())).not.toMatch(
    /X-Amz/,
  );
});

test('404 for another user’s upload', async () => {
  const upload = await begin();
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  const theirs = driveOf(product, { token: colleague.token, spaceId: user.spaceId });
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/complete'],
  ] as const) {
    expect((await theirs.send(method, `/uploads/${upload.id}${path}`)).status).toBe(404);
  }
});
