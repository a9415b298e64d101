import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { Placed } from '../../models/drive/changes.ts';
import { checkName, parsePath } from '../../models/drive/names.ts';
import { type ArrivedFile, type FileTarget, previewTarget } from '../../models/drive/placeFile.ts';
import type { OnConflict } from '../../models/drive/tree.ts';
import { type AlsoPlaced, UploadSession } from '../../models/drive/uploadSession.ts';
import {
  type Idempotency,
  type IdempotencyKey,
  idempotencyModels,
  keyInFlight,
} from '../../models/operations/idempotency.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { callerOf, changerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { idempotencyKeyOf } from '../frame/idempotency.ts';
import { type FilePart, readMultipart } from '../frame/multipart.ts';
import { requireStillAllowed } from '../frame/stillAllowed.ts';
import { presentUploaded } from './presentItem.ts';

const maxFiles = 100;

/** The answer of both upload routes. */
type Uploaded = AnswerOf<'uploadFiles'> & AnswerOf<'uploadThreadFiles'>;

/** The route decides who may put files where, by the form fields that precede each file. */
export interface ReceiveOptions {
  spaceId: string;
  userId: string;
  /** The status of the stored answer. */
  status: 200 | 201;
  /** The form fields that the route accepts besides `path` and `onConflict`. */
  fields: readonly string[];
  /** Returns the target container. Rejects if the caller may not write there. */
  containerOf(fields: Readonly<Record<string, string>>): Promise<string>;
}

/**
 * Streams the files of a multipart body into a drive, directly to the object store. Either all of them are stored or
 * none: if the client leaves, the body breaks off, or a name is taken, nothing remains. A repeat with the same
 * Idempotency-Key is only compared.
 */
export async function receiveFiles(deps: RouteDeps, req: Request, options: ReceiveOptions): Promise<Uploaded> {
  const key = idempotencyKeyOf(req);
  const first = key && (await idempotencyModels(deps.database).Idempotency.answered(key));
  if (first) return repeat(req, options, first);
  try {
    return await receive(deps, req, options, key);
  } catch (error) {
    // The same request was already under way. This one may have failed because of that one's files.
    if (key !== undefined && (await idempotencyModels(deps.database).Idempotency.answered(key)) !== null)
      throw keyInFlight();
    throw error;
  }
}

async function receive(
  deps: RouteDeps,
  req: Request,
  options: ReceiveOptions,
  key: IdempotencyKey | undefined,
): Promise<Uploaded> {
  const { database, storage, config } = deps;
  const { spaceId, userId, status } = options;
  const files: { target: FileTarget; file: ArrivedFile }[] = [];
  const digest = new FilesDigest(req);
  await using session = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
  await readFiles(req, options, async (part, containerId) => {
    const place = targetOf(part.fields, part.fileName);
    const target = {
      ...place,
      spaceId,
      userId,
      by: changerOf(callerOf(req)),
      containerId,
      ifMatch: req.get('if-match'),
    };
    const spot = session.knownSpot(target, mostBytesOf(req));
    const file =
      spot === undefined
        ? await session.receive(part.bytes, await previewTarget(database, target))
        : await session.receiveKnown(part.bytes, spot);
    digest.add(part, file.content.sha256);
    files.push({ target, file });
  });
  await requireStillAllowed(deps, req);
  const keepAnswer: AlsoPlaced | undefined =
    key &&
    (async (tx, placed) => {
      const body = presentAll(placed);
      const requestHash = digest.value();
      await idempotencyModels(tx).Idempotency.keep({ ...key, requestHash }, body.id, { status, body }, tx);
    });
  // `await` is needed: files that are not placed when this function returns are removed.
  return presentAll(await session.place(files, keepAnswer));
}

function presentAll(placed: readonly Placed[]): Uploaded {
  const files = placed.map(presentUploaded);
  const [first] = files;
  if (first === undefined) throw new Error('No file was placed.');
  return { ...first, files };
}

/** Answers a repeated request: reads its body to the end, checks that it is the same, and repeats the answer. */
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

/** A digest to compare whether two requests send the same files to the same places. Boundaries may differ. */
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

/** An upper bound of a file's size, from the Content-Length of the body. */
function mostBytesOf(req: Request): number {
  return Number(req.get('content-length') ?? Number.POSITIVE_INFINITY);
}

/**
 * An empty path, or one that ends with a slash, names a folder. Any other path is the file's own, unless a folder
 * exists there.
 */
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
