import { buffer } from 'node:stream/consumers';
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  type DeleteObjectsCommandInput,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3';
import { newId } from '../../../base/ids.ts';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { newObjectKey } from '../../../models/drive/driveObject.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { removeDoomed } from '../../../models/drive/removeObjects.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';

/** Only failures of the object store are reported as such. */
let environment: TestEnvironment;
let wire: TcpProxy;
let store: ObjectStore;
beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_S3_TIMEOUT_SECONDS: '60' }); // a part takes long on a busy machine
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
  'a failing database while %d bytes are counted is not reported as a failing object store',
  async (count) => {
    const gone = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', fatal: true });
    const options = { fileName: 'a', maxBytes: 1e9, reserve: () => Promise.reject(gone) };
    await expect(store.write(newObjectKey(), bytes(count), options)).rejects.toBe(gone);
  },
);

test('a store that breaks off in the middle of an object gives STORAGE_UNAVAILABLE', async () => {
  const key = newObjectKey();
  await store.write(key, bytes(8_000_000), { fileName: 'a', maxBytes: 1e9, reserve: async () => undefined });
  expect((await buffer(await store.read(key))).length).toBeGreaterThanOrEqual(8_000_000);
  const body = await store.read(key);
  wire.cut();
  await expect(buffer(body)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
});

describe('the removal of an object with its parts', () => {
  const unfinished = async (key: string) => {
    const list = new ListMultipartUploadsCommand({ Bucket: store.bucket, Prefix: key });
    return ((await store.client.send(list)).Uploads ?? []).map(({ Key }) => Key);
  };

  /** Calls `late` each time after the store has discarded parts. Returns a function that ends this. */
  function afterEachAbort(late: () => Promise<unknown>): () => void {
    store.client.middlewareStack.add(
      (next, context) => async (args) => {
        const done = await next(args);
        if (context.commandName === AbortMultipartUploadCommand.name) await late();
        return done;
      },
      { name: 'late', step: 'initialize' },
    );
    return () => store.client.middlewareStack.remove('late');
  }

  test('also discards parts that arrived meanwhile', async () => {
    const key = newObjectKey();
    await store.parts.begin(key);
    await store.parts.begin(key);
    let late = 2;
    const end = afterEachAbort(async () => {
      if (late-- > 0) await store.parts.begin(key);
    });
    await store.remove([key], { alsoParts: true });
    end();
    expect(late).toBeLessThan(0);
    expect(await unfinished(key)).toEqual([]);
  });

  test('reports an object whose parts keep arriving, and succeeds later', async () => {
    const key = newObjectKey();
    await store.parts.begin(key);
    const end = afterEachAbort(() => store.parts.begin(key));
    expect(await store.remove([key], { alsoParts: true })).toEqual([key]);
    end();
    expect(await store.remove([key], { alsoParts: true })).toEqual([]);
    expect(await unfinished(key)).toEqual([]);
  });

  test('after an aborted upload waits for a part that is being sent', async () => {
    const key = newObjectKey();
    const aborted: unknown[] = [];
    const send = store.parts.send.bind(store.parts);
    const watched = jest.spyOn(store.parts, 'send').mockImplementation(async (...args) => {
      const sent = send(...args);
      await sent.catch((error: unknown) => aborted.push(error));
      return sent;
    });
    async function* brokenOff(): AsyncGenerator<Buffer> {
      yield* bytes(17_000_000);
      throw new Error('The sender is gone.');
    }
    const options = { fileName: 'a', maxBytes: 1e9, reserve: async () => undefined };
    await expect(store.write(key, brokenOff(), options)).rejects.toMatchObject({
      cause: { message: 'The sender is gone.' },
    });
    expect(watched.mock.calls.length).toBe(2);
    expect(aborted).toEqual([]);
    expect(await unfinished(key)).toEqual([]);
    watched.mockRestore();
  });
});

test('an upload whose parts are gone counts as complete if its object exists with the right size', async () => {
  const key = newObjectKey();
  const send = async (uploadId: string, size: number) => {
    const part = { key, uploadId, partNumber: 1 };
    const etag = await store.parts.send(part, Buffer.alloc(size), AbortSignal.timeout(60_000));
    return { partNumber: 1, size, etag };
  };
  const [made, other] = [await store.parts.begin(key), await store.parts.begin(key)];
  const part = await send(made, 100);
  await store.parts.complete(key, made, [part]);
  expect(await store.parts.list(key, made, 100)).toBeUndefined();
  // A kill while the parts were removed leaves an upload without them.
  await store.parts.complete(key, other, [part]);
  await expect(store.parts.complete(key, other, [{ ...part, size: 99 }])).rejects.toMatchObject({
    code: 'UPLOAD_EXPIRED',
  });
  await expect(store.parts.list(key, made, 99)).rejects.toMatchObject({ code: 'UPLOAD_EXPIRED' });
  await store.remove([key], { alsoParts: true });
  await expect(store.parts.complete(key, other, [part])).rejects.toMatchObject({ code: 'UPLOAD_EXPIRED' });
});

test('an object that the store refuses to remove does not block others, and is tried again', async () => {
  const { database } = environment;
  const { DriveObject } = driveModels(database);
  const spaceId = newId('space');
  const keys = [newObjectKey(), newObjectKey(), newObjectKey()];
  const held = keys[0];
  for (const objectKey of keys) {
    await store.write(objectKey, bytes(10), { fileName: 'a', maxBytes: 1e9, reserve: async () => undefined });
    const rest = { leaseExpiresAt: null, createdAt: new Date(), size: 10 };
    await DriveObject.create({ objectKey, spaceId, state: 'doomed', isComplete: true, ...rest });
  }
  // A store answers so for an object under a legal hold.
  store.client.middlewareStack.add(
    (next, context) => async (args) => {
      if (context.commandName !== DeleteObjectsCommand.name) return next(args);
      const input = args.input as DeleteObjectsCommandInput;
      const Objects = input.Delete?.Objects?.filter(({ Key }) => Key !== held);
      const done = await next({ ...args, input: { ...input, Delete: { ...input.Delete, Objects } } } as typeof args);
      return { ...done, output: { ...done.output, Errors: [{ Key: held, Code: 'AccessDenied' }] } };
    },
    { name: 'held', step: 'initialize' },
  );
  const left = async () => (await DriveObject.findAll({ where: { spaceId } })).map(({ objectKey }) => objectKey);
  expect(await removeDoomed({ database, store })).toEqual({ removed: 2, refused: 1 });
  expect(await left()).toEqual([held]);
  await expect(removeDoomed({ database, store }, { spaceId })).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
  store.client.middlewareStack.remove('held');
  expect(await removeDoomed({ database, store }, { spaceId })).toEqual({ removed: 1, refused: 0 });
  expect(await left()).toEqual([]);
});
