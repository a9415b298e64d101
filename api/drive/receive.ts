import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { checkName, parsePath } from '../../models/drive/names.ts';
import { type ArrivedFile, type FileTarget, previewTarget } from '../../models/drive/placeFile.ts';
import type { OnConflict } from '../../models/drive/tree.ts';
import { UploadSession } from '../../models/drive/uploadSession.ts';
import { DomainError } from '../../models/errors.ts';
import { type Idempotency, type IdempotencyKey, idempotencyModels, keyInFlight } from '../../models/idempotency.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { idempotencyKeyOf } from '../frame/idempotency.ts';
import { type FilePart, readMultipart } from '../frame/multipart.ts';
import { presentUploaded } from './presentItem.ts';

const maxFiles = 100;

/** The answer of both routes that take files. */
type Uploaded = AnswerOf<'uploadFiles'> & AnswerOf<'uploadThreadFiles'>;

/** Who may put files where is the route's to say, by the fields that come before each of them. */
export interface ReceiveOptions {
  spaceId: string;
  userId: string;
  /** Of the answer, as it is kept. */
  status: 200 | 201;
  /** The fields that the route takes besides `path` and `onConflict`. */
  fields: readonly string[];
  /** The container that is meant; rejects when the caller may not write there. */
  containerOf(fields: Readonly<Record<string, string>>): Promise<string>;
}

/**
 * Takes the files of a multipart body into a drive, straight through to the object store. They are all there when it
 * resolves, or none of them is: a client that leaves half-way, a body that breaks off, a name that is taken in the end
 * leave nothing behind. What was received under an Idempotency-Key is only compared when it comes again.
 */
export async function receiveFiles(deps: RouteDeps, req: Request, options: ReceiveOptions): Promise<Uploaded> {
  const key = idempotencyKeyOf(req);
  const first = key && (await idempotencyModels(deps.database).Idempotency.answered(key));
  if (first) return repeat(req, options, first);
  try {
    return await receive(deps, req, options, key);
  } catch (error) {
    // The same request was under way already, and what is in this one's way may be its files.
    if (key !== undefined && (await idempotencyModels(deps.database).Idempotency.answered(key)) !== null)
      throw keyInFlight();
    throw error;
  }
}

async function receive(
  { database, storage, config }: RouteDeps,
  req: Request,
  options: ReceiveOptions,
  key: IdempotencyKey | undefined,
): Promise<Uploaded> {
  const { spaceId, userId, status } = options;
  const files: { target: FileTarget; file: ArrivedFile }[] = [];
  const digest = new FilesDigest(req);
  await using session = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
  await readFiles(req, options, async (part, containerId) => {
    const place = targetOf(part.fields, part.fileName);
    const target = { ...place, spaceId, userId, containerId, ifMatch: req.get('if-match') };
    const file = await session.receive(part.bytes, await previewTarget(database, target));
    digest.add(part, file.content.sha256);
    files.push({ target, file });
  });
  let body: Uploaded | undefined;
  // Awaited here: what is not placed when this function ends is removed.
  await session.place(files, async (tx, placed) => {
    const uploaded = placed.map(presentUploaded);
    const [first] = uploaded;
    if (first === undefined) throw new Error('No file was placed.');
    body = { ...first, files: uploaded };
    const requestHash = digest.value();
    if (key !== undefined)
      await idempotencyModels(tx).Idempotency.keep({ ...key, requestHash }, first.id, { status, body }, tx);
  });
  if (body === undefined) throw new Error('Files were placed without a word of where.');
  return body;
}

/** A request that was answered before: read to its end, to see whether it is the same, and answered as it was. */
async function repeat(req: Request, options: ReceiveOptions, first: Idempotency): Promise<Uploaded> {
  const digest = new FilesDigest(req);
  await readFiles(req, options, async (part) => {
    const hash = createHash('sha256');
    for await (const chunk of part.bytes) hash.update(chunk);
    digest.add(part, hash.digest());
  });
  first.requireSame(digest.value());
  return first.responseBody as Uploaded;
}

async function readFiles(
  req: Request,
  { fields, containerOf }: ReceiveOptions,
  onFile: (part: FilePart, containerId: string) => Promise<void>,
): Promise<void> {
  const limits = { fields: ['path', 'onConflict', ...fields], maxFiles };
  const count = await readMultipart(req, limits, async (part) => onFile(part, await containerOf(part.fields)));
  if (count > 0) return;
  throw new DomainError('invalid', 'INVALID_REQUEST', 'The body has no file.', {
    errors: [{ pointer: '/file', detail: 'is required' }],
  });
}

/** Tells whether two requests send the same files to the same places. The boundaries between them may differ. */
class FilesDigest {
  private readonly parts: unknown[];

  constructor(req: Request) {
    this.parts = [req.path];
  }

  add({ fields, fileName }: FilePart, sha256: Buffer): void {
    this.parts.push([fields, fileName, sha256.toString('hex')]);
  }

  value(): Buffer {
    return createHash('sha256').update(JSON.stringify(this.parts)).digest();
  }
}

/** A path that ends with a slash, or none, is a folder's; another one is the file's own, unless a folder is there. */
function targetOf({ path = '', onConflict = 'error' }: Readonly<Record<string, string>>, fileName: string) {
  const pathOf = path === '' || path.endsWith('/') ? ('folder' as const) : ('either' as const);
  if (pathOf === 'folder') checkName(fileName);
  return { names: parsePath(path), pathOf, fileName, onConflict: requireOnConflict(onConflict) };
}

function requireOnConflict(value: string): OnConflict {
  if (value === 'error' || value === 'rename' || value === 'replace') return value;
  throw new DomainError('invalid', 'INVALID_REQUEST', 'onConflict is one of error, rename and replace.', {
    errors: [{ pointer: '/onConflict', detail: 'must be error, rename or replace' }],
  });
}
