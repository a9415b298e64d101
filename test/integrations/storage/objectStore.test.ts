import { buffer } from 'node:stream/consumers';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { newObjectKey } from '../../../models/drive/driveObject.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';

/** Attribution: the store's failures are reported as such, and no other failure is. */
let environment: TestEnvironment;
let wire: TcpProxy;
let store: ObjectStore;
beforeAll(async () => {
  environment = await createTestEnvironment();
  wire = await startTcpProxy(() => stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  store = new ObjectStore({ ...environment.config.storage, endpoint: wire.url });
});
afterAll(async () => {
  store.close();
  await wire.stop();
  await environment.close();
});

async function* bytes(count: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < count; at += 65_536) yield Buffer.alloc(65_536, 'x');
}

test.each([1, 20_000_000])(
  'a database that is away while %d bytes are counted is not called the object store',
  async (count) => {
    const gone = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', fatal: true });
    const options = { fileName: 'a', maxBytes: 1e9, reserve: () => Promise.reject(gone) };
    await expect(store.write(newObjectKey(), bytes(count), options)).rejects.toBe(gone);
  },
);

test('a store that breaks off in the middle of an object is one that is away', async () => {
  const key = newObjectKey();
  await store.write(key, bytes(8_000_000), { fileName: 'a', maxBytes: 1e9, reserve: async () => undefined });
  expect((await buffer(await store.read(key))).length).toBeGreaterThanOrEqual(8_000_000);
  const body = await store.read(key);
  wire.cut();
  await expect(buffer(body)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
});
