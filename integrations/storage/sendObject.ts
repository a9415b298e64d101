import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';

/** With 10,000 parts at most, enough for 80 GiB. */
const partBytes = 8 * 1024 * 1024;
/** One part is sent while the next arrives; so an upload has about three parts in memory, however large its file is. */
const partsAtOnce = 2;

/**
 * Sends a stream as one object: in one request where it fits a part, else in parts. When the stream fails, or any part does, nothing is
 * sent any more, and the parts are given up before this rejects with what failed first.
 */
export async function sendObject(
  client: S3Client,
  target: { bucket: string; key: string },
  bytes: AsyncIterable<Buffer>,
): Promise<void> {
  const body = Readable.from(bytes, { objectMode: true, highWaterMark: 4 });
  let failure: unknown;
  // By itself the library would read a long stream to its end before it says that a part in the middle has failed.
  const failFast: S3Client = Object.create(client, {
    send: {
      value: async (command: Parameters<S3Client['send']>[0]) => {
        try {
          return await client.send(command);
        } catch (error) {
          failure ??= error;
          body.destroy(error instanceof Error ? error : undefined);
          throw error;
        }
      },
    },
  });
  const upload = new Upload({
    client: failFast,
    params: { Bucket: target.bucket, Key: target.key, Body: body },
    partSize: partBytes,
    queueSize: partsAtOnce,
  });
  try {
    await upload.done();
  } catch (error) {
    throw failure ?? error;
  } finally {
    body.destroy();
  }
}
