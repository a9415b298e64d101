import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { buildBucket, type TestBucket } from '../../builders/drive.ts';
import { stackEnvironment } from '../../support/environment.ts';

/** The fast path for storing an object, which leaves all failures to the SDK. */
let bucket: TestBucket;
beforeAll(async () => {
  bucket = await buildBucket();
});
afterAll(() => bucket.client.destroy());

const opened = new AsyncDisposableStack();
afterAll(() => opened.disposeAsync());

type Storage = ConstructorParameters<typeof ObjectStore>[0];

function storeAt(changes: Partial<Storage> = {}): ObjectStore {
  const stack = stackEnvironment();
  const store = new ObjectStore({
    endpoint: stack.ATRIUM_S3_ENDPOINT,
    region: stack.ATRIUM_S3_REGION ?? '',
    bucket: bucket.name,
    accessKeyId: stack.ATRIUM_S3_ACCESS_KEY_ID,
    secretAccessKey: stack.ATRIUM_S3_SECRET_ACCESS_KEY,
    publicEndpoint: undefined,
    silenceMs: 10_000,
    ...changes,
  });
  opened.defer(() => store.close());
  return store;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const keyOf = () => randomBytes(20).toString('hex');

async function write(store: ObjectStore, bytes: Buffer): Promise<string> {
  const key = keyOf();
  const options = { fileName: 'a.bin', maxBytes: 1e9, reserve: async () => undefined };
  async function* chunks() {
    yield bytes;
  }
  await store.write(key, chunks(), options);
  return key;
}

async function read(store: ObjectStore, key: string): Promise<Buffer> {
  return Buffer.concat(await (await store.read(key)).toArray());
}

test.each([0, 1, 1_024, 5_000_000])('%i bytes are stored unchanged', async (size) => {
  const store = storeAt();
  const [key, bytes] = [keyOf(), randomBytes(size)];
  expect(await store.direct?.put(key, bytes)).toBe(true);
  expect((await read(store, key)).equals(bytes)).toBe(true);
});

test.each<[string, Partial<Storage>]>([
  ['refuses the key', { secretAccessKey: 'another' }],
  ['has no such bucket', { bucket: 'none-of-this-name' }],
  ['is not there', { endpoint: 'http://127.0.0.1:9' }],
])('direct.put returns false for a store that %s, and the SDK then fails as well', async (_name, changes) => {
  const store = storeAt(changes);
  const key = keyOf();
  expect(await store.direct?.put(key, Buffer.from('x'))).toBe(false);
  expect(await bucket.keys()).not.toContain(key);
  await expect(write(store, Buffer.from('x'))).rejects.toMatchObject({ kind: 'unavailable' });
});

test.each([
  ['as they were sent', 'xxxx', true],
  ['changed on their way', 'yyyy', false],
])('bytes that arrive %s are stored only if they are intact', async (_name, arriving, isStored) => {
  const target = new URL(stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  const url = await serve(async (req, res) => {
    await req.resume().toArray();
    const { method, url: path, headers } = req;
    const passed = request({ hostname: target.hostname, port: target.port, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502);
      answer.pipe(res);
    });
    passed.end(arriving);
  });
  const key = keyOf();
  expect(await storeAt({ endpoint: url }).direct?.put(key, Buffer.from('xxxx'))).toBe(isStored);
  expect((await bucket.keys()).includes(key)).toBe(isStored);
});

test.each<[string, RequestListener]>([
  ['fails', (_req, res) => void res.writeHead(500).end()],
  ['breaks off', (req) => void req.socket.destroy()],
  [
    'breaks off in its answer',
    (req, res) => void res.writeHead(200, { 'content-length': 10 }).write('x', () => req.socket.destroy()),
  ],
  ['says nothing', () => undefined],
])('if the store %s once, the SDK stores the object', async (_name, fault) => {
  let requests = 0;
  const url = await serve((req, res) => {
    requests += 1;
    if (requests === 1) fault(req, res);
    else req.resume().on('end', () => res.writeHead(200, { etag: '"x"' }).end());
  });
  const store = storeAt({ endpoint: url, silenceMs: 1_000 });
  await write(store, Buffer.from('x'));
  expect(requests).toBe(2);
  await write(store, Buffer.from('x'));
  expect(requests).toBe(3);
});

test('without a configured endpoint or keys there is no fast path', () => {
  expect(storeAt({ endpoint: undefined }).direct).toBeUndefined();
  expect(storeAt({ accessKeyId: undefined, secretAccessKey: undefined }).direct).toBeUndefined();
});
