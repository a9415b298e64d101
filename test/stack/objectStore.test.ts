import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { loadLaunchConfig } from '../../config/launch.ts';
import { startObjectStore } from '../../stack/objectStore.ts';
import { getObjectStore } from '../../stack/programs.ts';
import { createStackContext } from '../support/stackContext.ts';

const bucket = 'atrium-test';

/** The embedded store in a data directory, and a client of it. */
async function storeIn(dataDir?: string) {
  const { cacheDir } = loadLaunchConfig(process.env);
  const context = createStackContext({ cacheDir, bucket, ...(dataDir !== undefined && { dataDir }) });
  const store = await startObjectStore(context, await getObjectStore(context));
  const { endpoint, region, accessKeyId, secretAccessKey } = store;
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    maxAttempts: 1,
  });
  return {
    client,
    dataDir: context.dataDir,
    folder: join(context.servicesDir, 'storage', 'objects', bucket),
    async stop() {
      client.destroy();
      await store.service.stop();
    },
  };
}

/** An upload with its parts, of which each but the last has 5 MiB. Completes it when it is told to. */
async function uploadOf(client: S3Client, key: string, parts: number) {
  const object = { Bucket: bucket, Key: key };
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(object));
  const Parts = await Promise.all(
    Array.from({ length: parts }, async (_, n) => {
      const part = { ...object, UploadId, PartNumber: n + 1, Body: Buffer.alloc(5 * 1_048_576, n + 1) };
      const { ETag } = await client.send(new UploadPartCommand(part));
      return { PartNumber: n + 1, ETag };
    }),
  );
  return {
    complete: (by = client) =>
      by.send(new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } })),
  };
}

test('an upload whose completion was cut off by a kill is completed by the next attempt', async () => {
  const first = await storeIn();
  const upload = await uploadOf(first.client, 'cut', 2);
  await first.stop();
  // What a kill leaves while the parts are put together: their folder has the name of an upload that is worked on.
  const uploads = join(first.folder, '.sgwtmp', 'multipart');
  const [ofKey = ''] = readdirSync(uploads);
  const [id = ''] = readdirSync(join(uploads, ofKey));
  renameSync(join(uploads, ofKey, id), join(uploads, ofKey, `${id}.0123-2.inprogress`));

  const second = await storeIn(first.dataDir);
  await upload.complete(second.client);
  const { ContentLength } = await second.client.send(new HeadObjectCommand({ Bucket: bucket, Key: 'cut' }));
  expect(ContentLength).toBe(10 * 1_048_576);
  expect(readdirSync(uploads)).toEqual([]);
  await second.stop();
});

test('of several completions at once, none is told that the object is there before it is', async () => {
  const { client, stop } = await storeIn();
  const upload = await uploadOf(client, 'twice', 8);
  const completeAndLook = async () => {
    await upload.complete();
    return client.send(new HeadObjectCommand({ Bucket: bucket, Key: 'twice' }));
  };
  const found = await Promise.all([completeAndLook(), completeAndLook(), completeAndLook()]);
  expect(found.map(({ ContentLength }) => ContentLength)).toEqual(found.map(() => 40 * 1_048_576));
  await stop();
});
