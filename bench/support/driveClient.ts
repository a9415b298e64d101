import { Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';

/** The same bytes over and over, since the bench measures the transfer and not its source. */
const block = Buffer.alloc(256 * 1024, 'Atrium measures itself. ');
/** As long as a browser's boundary, since the server searches all bytes for it. */
const boundary = '----FormBoundary7MA4YWxkTrZu0gW';
/** The SDK sends larger bodies in parts. */
const onePartBytes = 5 * 1024 * 1024;

export interface BlobClient {
  upload(name: string, size: number): Promise<void>;
  /** Reads the whole object. Throws unless it has `size` bytes. */
  download(name: string, size: number): Promise<void>;
}

/** The AWS SDK, straight to the object store, as its documentation says to use it. */
export function sdkClient(client: S3Client, bucket: string): BlobClient {
  return {
    async upload(name, size) {
      const target = { Bucket: bucket, Key: name };
      if (size <= onePartBytes) {
        await client.send(new PutObjectCommand({ ...target, Body: Buffer.concat([...blocks(size)]) }));
      } else {
        await new Upload({ client, params: { ...target, Body: Readable.from(blocks(size)) } }).done();
      }
    },
    async download(name, size) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: name }));
      await readAll(Body as Readable, size);
    },
  };
}

/** Atrium's own API over one kept connection, as the SDK keeps its own. */
export function atriumClient({ url, token }: { url: string; token: string }, spaceId: string): BlobClient {
  const agent = new Agent({ keepAlive: true });
  const ids = new Map<string, string>();
  const drive = `${url}/api/spaces/${spaceId}/drive`;
  const authorization = `Bearer ${token}`;

  return {
    async upload(name, size) {
      const head = Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="path"\r\n\r\n/${name}\r\n` +
          `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n`,
      );
      const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
      const response = await send(`${drive}/upload`, {
        method: 'POST',
        headers: {
          'content-type': `multipart/form-data; boundary=${boundary}`,
          'content-length': head.length + size + tail.length,
        },
        body: Readable.from(joined(head, blocks(size), tail)),
      });
      ids.set(name, ((await json(response)) as { id: string }).id);
    },
    async download(name, size) {
      await readAll(await send(`${drive}/items/${ids.get(name)}/content`, { method: 'GET' }), size);
    },
  };

  async function send(
    address: string,
    { method, headers = {}, body }: { method: string; headers?: Record<string, string | number>; body?: Readable },
  ): Promise<Readable> {
    const outgoing = request(address, { method, agent, headers: { ...headers, authorization } });
    const answered = new Promise<Readable>((resolve, reject) => {
      outgoing.on('error', reject);
      outgoing.on('response', async (response) => {
        if (response.statusCode === 200) resolve(response);
        else reject(new Error(`${address} answered ${response.statusCode}: ${await text(response)}`));
      });
    });
    if (body === undefined) outgoing.end();
    else await pipeline(body, outgoing);
    return answered;
  }
}

export async function json(stream: Readable): Promise<unknown> {
  return JSON.parse(await text(stream));
}

async function text(stream: Readable): Promise<string> {
  return Buffer.concat(await stream.toArray()).toString();
}

function* blocks(size: number): Generator<Buffer> {
  for (let left = size; left > 0; left -= block.length) yield left >= block.length ? block : block.subarray(0, left);
}

function* joined(head: Buffer, body: Iterable<Buffer>, tail: Buffer): Generator<Buffer> {
  yield head;
  yield* body;
  yield tail;
}

async function readAll(stream: Readable, size: number): Promise<void> {
  let read = 0;
  for await (const chunk of stream) read += (chunk as Buffer).length;
  if (read !== size) throw new Error(`Read ${read} bytes of ${size}.`);
}
