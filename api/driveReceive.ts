import type { Request } from 'express';
import type { Placed } from '../models/drive/changes.ts';
import { checkName, parsePath } from '../models/drive/names.ts';
import { type ArrivedFile, type FileTarget, previewTarget } from '../models/drive/placeFile.ts';
import type { OnConflict } from '../models/drive/tree.ts';
import { UploadSession } from '../models/drive/uploadSession.ts';
import { DomainError } from '../models/errors.ts';
import type { RouteDeps } from './deps.ts';
import { readMultipart } from './multipart.ts';

const maxFiles = 100;

/** Who may put files where is the route's to say, by the fields that come before each of them. */
export interface ReceiveOptions {
  spaceId: string;
  userId: string;
  /** The fields that the route takes besides `path` and `onConflict`. */
  fields: readonly string[];
  /** The container that is meant; rejects when the caller may not write there. */
  containerOf(fields: Readonly<Record<string, string>>): Promise<string>;
}

/**
 * Takes the files of a multipart body into a drive, straight through to the object store. They are all there when it resolves, or none of
 * them is: a client that leaves half-way, a body that breaks off, a name that is taken in the end leave nothing behind.
 */
export async function receiveFiles(deps: RouteDeps, req: Request, options: ReceiveOptions): Promise<Placed[]> {
  const { spaceId, userId, fields } = options;
  const { database, storage, config } = deps;
  const files: { target: FileTarget; file: ArrivedFile }[] = [];
  await using session = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
  await readMultipart(req, { fields: ['path', 'onConflict', ...fields], maxFiles }, async (part) => {
    const containerId = await options.containerOf(part.fields);
    const target = {
      ...targetOf(part.fields, part.fileName),
      spaceId,
      userId,
      containerId,
      ifMatch: req.get('if-match'),
    };
    const name = await previewTarget(target);
    files.push({ target, file: await session.receive(part.bytes, name) });
  });
  if (files.length === 0) {
    throw new DomainError('invalid', 'INVALID_REQUEST', 'The body has no file.', {
      errors: [{ pointer: '/file', detail: 'is required' }],
    });
  }
  // Awaited here: what is not placed when this function ends is removed.
  return await session.place(files);
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
