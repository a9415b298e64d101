import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { loadLaunchConfig } from '../../config/launch.ts';
import { startObjectStore } from '../../stack/objectStore.ts';
import { getObjectStore } from '../../stack/programs.ts';
import { temporaryFolder } from '../support/folders.ts';
import { createStackContext } from '../support/stackContext.ts';
import { waitFor } from '../support/waitFor.ts';

const bucket = 'atrium-test';

/** Starts the embedded store in a data directory. Returns it with a client. */
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
    head: (key: string) => client.send(new HeadObjectCommand({ Bucket: bucket, Key: key })),
    async stop() {
      client.destroy();
      await store.service.stop();
    },
  };
}

/** Starts a multipart upload and sends its parts of 5 MiB each. `complete` completes it. */
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
    id: UploadId ?? '',
    complete: (by = client) =>
      by.send(new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } })),
    list: () => client.send(new ListPartsCommand({ ...object, UploadId })),
  };
}

test('the next attempt completes an upload whose completion was interrupted by a kill', async () => {
  const first = await storeIn();
  const upload = await uploadOf(first.client, 'cut', 2);
  await first.stop();
  // A kill during completion leaves the folder of parts with the name of an upload in progress.
  const uploads = join(first.folder, '.sgwtmp', 'multipart');
  const [ofKey = ''] = readdirSync(uploads);
  const [id = ''] = readdirSync(join(uploads, ofKey));
  renameSync(join(uploads, ofKey, id), join(uploads, ofKey, `${id}.0123-2.inprogress`));

  const second = await storeIn(first.dataDir);
  await upload.complete(second.client);
  expect((await second.head('cut')).ContentLength).toBe(10 * 1_048_576);
  expect(readdirSync(uploads)).toEqual([]);
  await second.stop();
});

test('an upload is complete if a kill interrupted only the removal of its parts', async () => {
  const first = await storeIn();
  const upload = await uploadOf(first.client, 'named', 2);
  const uploads = join(first.folder, '.sgwtmp', 'multipart');
  const [ofKey = ''] = readdirSync(uploads);
  const parts = temporaryFolder();
  execFileSync('cp', ['-a', join(uploads, ofKey), parts]);
  const { ETag } = await upload.complete();
  await first.stop();
  execFileSync('cp', ['-a', join(parts, ofKey), uploads]);
  const left = join(uploads, ofKey, `${upload.id}.0123-2.inprogress`);
  renameSync(join(uploads, ofKey, upload.id), left);
  rmSync(join(left, '1'));

  const second = await storeIn(first.dataDir);
  expect((await upload.complete(second.client)).ETag).toBe(ETag);
  expect(await second.head('named')).toMatchObject({ ContentLength: 10 * 1_048_576, ETag });
  expect(readdirSync(uploads)).toEqual([]);
  await second.stop();
});

test('once an upload is no longer listed, its object exists', async () => {
  const { client, head, stop } = await storeIn();
  const upload = await uploadOf(client, 'listed', 8);
  const completing = upload.complete();
  let isListed = true;
  while (isListed) {
    isListed = await upload.list().then(
      () => true,
      ({ name }: Error) => name !== 'NoSuchUpload',
    );
  }
  expect((await head('listed')).ContentLength).toBe(40 * 1_048_576);
  await completing;
  await stop();
});

test('a start removes temporary files that a kill left, but no objects or uploads', async () => {
  const first = await storeIn();
  const keys = ['kept', '.kept.sgwtmp.note', `.kept.sgwtmp.${BigInt(Date.now() + 3_600_000) * 1_000_000n}`];
  for (const Key of keys) await first.client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'x' }));
  const upload = await uploadOf(first.client, 'arriving', 2);
  await first.stop();
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const temporary = join(first.folder, '.sgwtmp');
  const leave = (...path: string[]) => writeFileSync(join(...path), 'half of it');
  leave(first.folder, `.kept.sgwtmp.${BigInt(Date.now()) * 1_000_000n}`);
  leave(temporary, `${hash('kept')}.123`);
  leave(temporary, 'multipart', hash('arriving'), `${hash('1')}.123`);
  mkdirSync(join(temporary, 'multipart', hash('done')));
  mkdirSync(join(temporary, 'multipart', hash('unanswered'), 'upload'), { recursive: true });
  // The store may run as another user.
  execFileSync('chown', ['-R', '--reference', first.folder, temporary]);

  const { client, stop } = await storeIn(first.dataDir);
  expect(readdirSync(temporary)).toEqual(['multipart']);
  expect(readdirSync(join(temporary, 'multipart'))).toEqual([hash('arriving')]);
  expect(readdirSync(join(temporary, 'multipart', hash('arriving')))).toEqual([upload.id]);
  await waitFor('the names beside objects to go', async () => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
    return Contents.length <= keys.length;
  });
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
  expect(Contents.map(({ Key }) => Key).toSorted()).toEqual(keys.toSorted());
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
  expect(Uploads.map(({ Key }) => Key)).toEqual(['arriving']);
  await upload.complete(client);
  await stop();
});

test('simultaneous completions of an upload all return after its object exists', async () => {
  const { client, head, stop } = await storeIn();
  const upload = await uploadOf(client, 'twice', 8);
  const completeAndLook = async () => {
    await upload.complete();
    return head('twice');
  };
  const found = await Promise.all([completeAndLook(), completeAndLook(), completeAndLook()]);
  expect(found.map(({ ContentLength }) => ContentLength)).toEqual(found.map(() => 40 * 1_048_576));
  await stop();
});
