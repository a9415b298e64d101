import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { Op } from 'sequelize';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { newObjectKey } from '../../models/drive/driveObject.ts';
import { driveModels } from '../../models/drive/models.ts';
import { operationModels } from '../../models/operations/operation.ts';
import type { ChatUser } from '../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  formOf,
  type ItemBody,
  problemOf,
  type TestDrive,
} from '../builders/drive.ts';
import { stackEnvironment } from '../support/environment.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

/**
 * The drive while its object store is down, and while its process is killed. Nothing is lost, left over or half done.
 */
let gate: TcpProxy;
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  gate = await startTcpProxy(() => stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  product = await buildDrive({
    ...hurriedSweeper,
    ATRIUM_S3_ENDPOINT: gate.url,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    ATRIUM_S3_TIMEOUT_SECONDS: '3', // on a slow disk the store can be silent for more than one second
  });
});
afterAll(async () => {
  gate.open();
  await product.close();
  await gate.stop();
});
beforeEach(async () => {
  gate.open();
  user = await product.user();
  drive = driveOf(product, user);
});

const mebibyte = 1_048_576;
const bytes = new Uint8Array(randomBytes(16 * mebibyte + 5));
const sha256 = createHash('sha256').update(bytes).digest('hex');

interface Upload {
  id: string;
  partSize: number;
  parts: { partNumber: number; size: number; url: string }[];
}

async function sendParts(): Promise<Upload> {
  const response = await drive.send('POST', '/uploads', { path: '/large.bin', size: bytes.length });
  const upload = (await response.json()) as Upload;
  for (const { partNumber, size, url } of upload.parts) {
    const at = (partNumber - 1) * upload.partSize;
    expect((await fetch(url, { method: 'PUT', body: bytes.slice(at, at + size) })).status).toBe(200);
  }
  return upload;
}

/** Ends the leases of arriving objects, and waits until the sweeper has removed them. */
async function sweptClean(): Promise<void> {
  const { DriveObject } = driveModels(product.environment.database);
  const { spaceId } = user;
  await waitFor('the sweeper', async () => {
    await DriveObject.update({ leaseExpiresAt: new Date(0) }, { where: { spaceId, state: 'arriving' } });
    const left = { spaceId, [Op.or]: [{ state: 'arriving' }, { state: 'doomed', leaseExpiresAt: null }] };
    return (await DriveObject.count({ where: left })) === 0;
  });
  await expectNoOrphans(product, spaceId);
}

/** The uploads with parts in the store, except those of doomed objects, for which the sweeper looks again. */
async function unfinished(): Promise<string[]> {
  const doomed = await driveModels(product.environment.database).DriveObject.findAll({ where: { state: 'doomed' } });
  const keys = doomed.map(({ objectKey }) => objectKey);
  return (await product.bucket.unfinished()).filter((key) => !keys.includes(key));
}

describe('The object store is down', () => {
  test('503 with Retry-After for requests that need the store, and nothing is half done', async () => {
    const file = await drive.put('/a.txt', 'content');
    gate.shut();
    const refused = [
      await drive.upload({ path: '/b.txt' }, { bytes: 'x' }),
      await drive.upload({ path: '/c.bin' }, { bytes: new Uint8Array(20 * mebibyte) }),
      await drive.send('GET', `/items/${file.id}/content`),
      await drive.send('POST', '/uploads', { path: '/d.bin', size: 10 }),
    ];
    for (const response of refused) {
      expect([response.status, (await problemOf(response)).code]).toEqual([503, 'STORAGE_UNAVAILABLE']);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    // Requests that need no bytes still work.
    expect(await drive.names()).toEqual(['a.txt']);
    expect((await drive.send('PATCH', `/items/${file.id}`, { name: 'renamed.txt' })).status).toBe(200);
    // The rest of Atrium works too: chat needs no object store.
    const ready = await fetch(`${product.url}/readyz`);
    expect([ready.status, ((await ready.json()) as { status: string }).status]).toEqual([200, 'degraded']);
    gate.open();
    expect(await drive.content(file.id)).toBe('content');
    await drive.put('/b.txt', 'x');
    await sweptClean();
  });

  test('503 while the store is frozen, and no upload or download waits for long', async () => {
    const small = await drive.put('/small.txt', 'content');
    const large = await drive.upload({ path: '/large.bin' }, { bytes: new Uint8Array(2 * mebibyte) });
    const { id: largeId } = (await large.json()) as ItemBody;
    gate.freeze();
    const refused = await Promise.all([
      drive.upload({ path: '/b.txt' }, { bytes: 'x' }),
      drive.upload({ path: '/c.bin' }, { bytes: new Uint8Array(20 * mebibyte) }),
      drive.send('GET', `/items/${small.id}/content`),
      drive.send('GET', `/items/${largeId}/content`),
      drive.send('POST', '/uploads', { path: '/d.bin', size: 10 }),
    ]);
    for (const response of refused) {
      expect([response.status, (await problemOf(response)).code]).toEqual([503, 'STORAGE_UNAVAILABLE']);
    }
    expect((await fetch(`${product.url}/readyz`)).status).toBe(200);
    gate.thaw();
    expect(await drive.content(small.id)).toBe('content');
    await sweptClean();
  });

  test('Parts that arrive after their upload was given up are removed at the second look', async () => {
    const { DriveObject } = driveModels(product.environment.database);
    const { spaceId } = user;
    const objectKey = newObjectKey();
    await DriveObject.begin(product.environment.database, { objectKey, spaceId, bytes: 5, quotaBytes: 1e9 });
    await sweptClean();
    const store = new ObjectStore(product.environment.config.storage);
    await store.parts.begin(objectKey);
    store.close();
    expect(await product.bucket.unfinished()).toContain(objectKey);
    await DriveObject.update({ leaseExpiresAt: new Date(0) }, { where: { objectKey } });
    await waitFor('the second look', async () => (await DriveObject.findByPk(objectKey)) === null);
    expect(await product.bucket.unfinished()).not.toContain(objectKey);
    await expectNoOrphans(product, spaceId);
  });

  test('503 when the store goes away in the middle of a large upload, and nothing is left', async () => {
    const before = gate.bytesIn();
    const sending = drive.upload({ path: '/large.bin' }, { bytes: new Uint8Array(60 * mebibyte) });
    await waitFor('the first parts', () => gate.bytesIn() - before > 10 * mebibyte);
    gate.shut();
    const response = await sending;
    expect([response.status, (await problemOf(response)).code]).toEqual([503, 'STORAGE_UNAVAILABLE']);
    expect(await drive.names()).toEqual([]);
    gate.open();
    await sweptClean();
  });

  test('A file that is removed for good disappears at once, and its object when the store is back', async () => {
    const file = await drive.put('/a.txt', 'content');
    gate.shut();
    const removing = drive.send('DELETE', `/items/${file.id}?permanent=true`);
    await waitFor('the file to disappear', async () => (await drive.names()).length === 0);
    gate.open();
    expect((await removing).status).toBe(204);
    await expectNoOrphans(product, user.spaceId);
  });
});

describe('The process is killed', () => {
  test('An upload that a kill interrupts leaves nothing', async () => {
    const { hostname, port } = new URL(product.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(
      [
        `POST /api/spaces/${user.spaceId}/drive/upload HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${user.token}`,
        'Content-Type: multipart/form-data; boundary=limit',
        `Content-Length: ${100 * mebibyte}`,
        '',
        '--limit\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n',
      ].join('\r\n'),
    );
    socket.write(Buffer.alloc(30 * mebibyte, 'x'));
    await waitFor('parts in the store', async () => (await unfinished()).length > 0);
    await product.process.kill('SIGKILL');
    await closed;
    expect((await unfinished()).length).toBe(1);
    await product.restart();
    await sweptClean();
    expect(await unfinished()).toEqual([]);
    expect(await drive.names()).toEqual([]);
  });

  // One kill for three things that must go on after it, because starting Atrium takes long.
  test('After a kill an upload is completed, a folder is purged, and a repeated request gets its answer', async () => {
    for (let n = 0; n < 20; n++) await drive.put(`/folder/${n % 4}/${n}.txt`, `${n}`);
    const [folder] = (await drive.get<{ data: ItemBody[] }>('/items')).data;
    const { id } = await sendParts();
    const sendOnce = () =>
      drive.send('POST', '/upload', formOf({ path: '/once.txt' }, [{ bytes: 'x' }]), { 'idempotency-key': 'once' });
    const answer = await (await sendOnce()).json();
    // The store is away, so both operations are still running at the kill.
    gate.shut();
    const under = [
      drive.send('POST', `/uploads/${id}/complete`).catch(() => undefined),
      drive.send('DELETE', `/items/${folder?.id}?permanent=true`).catch(() => undefined),
    ];
    await waitFor('both operations to be recorded', async () => {
      const purge = await operationModels(product.environment.database).Operation.findOne({
        where: { kind: 'purgeItem', subjectId: folder?.id ?? '' },
      });
      return purge !== null && (await driveModels(product.environment.database).DriveUpload.findByPk(id))?.operationId;
    });
    await product.process.kill('SIGKILL');
    await Promise.all(under);
    gate.open();
    await product.restart();

    const again = await sendOnce();
    expect([again.status, await again.json()]).toEqual([200, answer]);
    const operation = await waitFor('the end of the operation', async () => {
      const found = await operationModels(product.environment.database).Operation.findOne({
        where: { kind: 'completeUpload', subjectId: id },
      });
      return found?.status !== 'running' && found;
    });
    expect(operation.status).toBe('succeeded');
    const item = await drive.get<ItemBody>(`/items/${String(operation.result?.itemId)}`);
    expect(item).toMatchObject({ path: '/large.bin', sha256 });
    const completed = await drive.send('POST', `/uploads/${id}/complete`);
    expect([completed.status, await completed.json()]).toEqual([200, item]);
    // Only the two files are left, and nothing of the folder.
    await waitFor(
      'the purge',
      async () =>
        (await driveModels(product.environment.database).DriveObject.count({ where: { spaceId: user.spaceId } })) === 2,
    );
    expect(await drive.names()).toEqual(['large.bin', 'once.txt']);
    await expectNoOrphans(product, user.spaceId);
  });
});
