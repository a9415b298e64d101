import { randomBytes } from 'node:crypto';
import { CreateBucketCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { operations } from '../../api/generated/types.gen.ts';
import type { Environment } from '../../config/index.ts';
import type { DriveObject, ObjectState } from '../../models/drive/driveObject.ts';
import { driveModels } from '../../models/drive/models.ts';
import { stackEnvironment } from '../support/environment.ts';
import type { ChatUser } from './chat.ts';
import { buildProduct, type TestProduct } from './product.ts';

type Json<Id extends keyof operations, Status extends number> = operations[Id]['responses'] extends {
  [S in Status]: { content: { 'application/json': infer Body } };
}
  ? Body
  : never;

export type ItemBody = Json<'getDriveItem', 200>;
export type UploadBody = Json<'uploadFiles', 200>;
export type TreeBody = Json<'getDriveTree', 200>;
export type ItemPage = Json<'listDriveItems', 200>;

export interface ProblemBody {
  status: number;
  code: string;
  detail: string;
  errors?: { pointer: string; detail: string }[];
}

/** A whole Atrium with its own bucket, so that a test can check the bucket's contents. */
export interface TestDrive extends TestProduct {
  bucket: TestBucket;
}

export interface TestBucket {
  name: string;
  client: S3Client;
  /** The keys of the objects, and of the unfinished uploads in parts. */
  keys(): Promise<string[]>;
  unfinished(): Promise<string[]>;
}

/** `store` has the variables of another object store than that of the test run. */
export async function buildDrive(overrides: Environment = {}, store: Environment = {}): Promise<TestDrive> {
  const bucket = await buildBucket(store);
  const product = await buildProduct({ ATRIUM_S3_BUCKET: bucket.name, ...store, ...overrides });
  const { close } = product;
  return Object.assign(product, {
    bucket,
    async close() {
      await close();
      bucket.client.destroy();
    },
  });
}

export async function buildBucket(store: Environment = {}): Promise<TestBucket> {
  const stack = { ...stackEnvironment(), ...store };
  const name = `drive-${randomBytes(6).toString('hex')}`;
  const client = new S3Client({
    endpoint: stack.ATRIUM_S3_ENDPOINT ?? '',
    region: stack.ATRIUM_S3_REGION ?? '',
    forcePathStyle: true,
    credentials: {
      accessKeyId: stack.ATRIUM_S3_ACCESS_KEY_ID ?? '',
      secretAccessKey: stack.ATRIUM_S3_SECRET_ACCESS_KEY ?? '',
    },
  });
  await client.send(new CreateBucketCommand({ Bucket: name }));
  return {
    name,
    client,
    async keys() {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: name }));
      return Contents.flatMap(({ Key }) => Key ?? []);
    },
    async unfinished() {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: name }));
      return Uploads.flatMap(({ Key }) => Key ?? []);
    },
  };
}

export interface SentFile {
  bytes: string | Uint8Array<ArrayBuffer>;
  name?: string;
  type?: string;
}

/** The form that a browser sends: the fields in order, then the files. */
export function formOf(fields: Record<string, string>, files: readonly SentFile[]): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const { bytes, name = 'file.bin', type = 'application/octet-stream' } of files) {
    form.append('file', new Blob([bytes], { type }), name);
  }
  return form;
}

/** A person's requests about a drive, over HTTP. */
export function driveOf(product: { url: string }, user: Pick<ChatUser, 'token' | 'spaceId'>) {
  const base = `/api/spaces/${user.spaceId}/drive`;
  const send = (
    method: string,
    path: string,
    body?: FormData | string | Uint8Array<ArrayBuffer> | object,
    headers: Record<string, string> = {},
  ) => {
    const isJson = body !== undefined && Object.getPrototypeOf(body) === Object.prototype;
    return fetch(product.url + (path.startsWith('/api/') ? path : base + path), {
      method,
      headers: {
        authorization: `Bearer ${user.token}`,
        ...(isJson && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: isJson ? JSON.stringify(body) : (body as FormData | undefined),
    });
  };
  const json = async <T>(response: Response): Promise<T> => {
    if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  const drive = {
    send,
    upload: (fields: Record<string, string>, ...files: SentFile[]) => send('POST', '/upload', formOf(fields, files)),
    /** Uploads a file. Throws if that fails. */
    async put(path: string, bytes: SentFile['bytes'] = 'content', onConflict = 'error'): Promise<UploadBody> {
      return json(await drive.upload({ path, onConflict }, { bytes }));
    },
    async get<T = ItemBody>(path: string): Promise<T> {
      return json(await send('GET', path));
    },
    async folder(path: string): Promise<ItemBody> {
      return json(await send('POST', '/folders', { path }));
    },
    item: (itemId: string) => drive.get(`/items/${itemId}`),
    /** The names in a folder, as a list returns them. */
    async names(path = '/'): Promise<string[]> {
      const page = await drive.get<ItemPage>(`/items?path=${encodeURIComponent(path)}&limit=200`);
      return page.data.map(({ name, kind }) => (kind === 'folder' ? `${name}/` : name));
    },
    async content(itemId: string): Promise<string> {
      return (await send('GET', `/items/${itemId}/content`)).text();
    },
  };
  return drive;
}

/** The problem of a response that must be a refusal. */
export async function problemOf(response: Response): Promise<ProblemBody> {
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  return (await response.json()) as ProblemBody;
}

/**
 * Asserts that all objects of a space are kept and that the space's usage is their sum. Also that the store has only
 * kept objects, objects that arrived too late and will be looked for again, and parts of unfinished uploads of any
 * space.
 */
export async function expectNoOrphans(drive: TestDrive, spaceId: string): Promise<void> {
  const { Drive, DriveObject: Objects } = driveModels(drive.environment.database);
  const objects = await Objects.findAll();
  const keysOf = (state: ObjectState) => objects.filter((row) => row.state === state).map(({ objectKey }) => objectKey);
  // An abandoned upload may reach the store after its object was removed.
  const isLookedForAgain = (row: DriveObject) => row.state === 'doomed' && row.leaseExpiresAt !== null;
  const late = objects.filter((row) => isLookedForAgain(row) && !row.isComplete).map(({ objectKey }) => objectKey);
  expect((await drive.bucket.keys()).filter((key) => !late.includes(key)).sort()).toEqual(keysOf('kept').sort());
  const known = [...keysOf('arriving'), ...keysOf('doomed')];
  expect((await drive.bucket.unfinished()).filter((key) => !known.includes(key))).toEqual([]);
  expect(objects.filter((row) => row.spaceId === spaceId && row.state !== 'kept' && !isLookedForAgain(row))).toEqual(
    [],
  );
  const sizes = objects.filter((row) => row.spaceId === spaceId).map(({ size }) => size);
  expect(await Drive.usedBytesOf(spaceId)).toBe(sizes.reduce((sum, size) => sum + size, 0));
}
