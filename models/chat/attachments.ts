import { DomainError } from '../../base/errors.ts';
import type { On } from '../database/bound.ts';
import { driveContainerId, parseContainerId } from '../drive/containers.ts';
import type { Content } from '../drive/driveItem.ts';
import { driveModels } from '../drive/models.ts';
import { parsePath } from '../drive/names.ts';
import { findByPath, placeOf } from '../drive/place.ts';
import type { AttachedFile, FileReference, StoredPart } from './message.ts';
import { chatModels } from './models.ts';

/** The image types that models accept; others are ordinary files. */
const imageTypes: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export function isImageType(contentType: string): boolean {
  return imageTypes.includes(contentType);
}

export function isPdfType(contentType: string): boolean {
  return contentType === 'application/pdf';
}

/**
 * Finds the files that a message names, in its space's drive, in an app, or among the files of the sender's own
 * threads, and records their versions: later changes do not affect earlier messages. Throws 404 `FILE_NOT_FOUND` for a
 * file that is absent or another user's, 422 `NOT_A_FILE` for a folder.
 */
export async function attachFiles(
  on: On,
  where: { spaceId: string; userId: string },
  references: readonly FileReference[],
): Promise<StoredPart[]> {
  return Promise.all(
    references.map(async (reference, index) => ({
      type: 'data-file' as const,
      data: await attach(on, where, reference, `/files/${index}/path`),
    })),
  );
}

async function attach(
  on: On,
  { spaceId, userId }: { spaceId: string; userId: string },
  reference: FileReference,
  pointer: string,
): Promise<AttachedFile> {
  const containerId = reference.containerId ?? driveContainerId;
  const missing = () => refused('notFound', 'FILE_NOT_FOUND', 'There is no such file.', pointer);
  if (!(await mayRead(on, containerId, spaceId, userId))) throw missing();
  const found = await findByPath(on, { spaceId, containerId, names: namesIn(reference.path, missing) });
  if (found === undefined) throw missing();
  const { item, place } = found;
  const { content } = item;
  if (content === undefined) throw refused('unprocessable', 'NOT_A_FILE', 'This is a folder, not a file.', pointer);
  const { fileType, fileName, width, height } = reference;
  return {
    path: place.path,
    containerId,
    ...(fileType !== undefined && { fileType }),
    mimeType: content.contentType,
    fileName: fileName ?? item.name,
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
    itemId: item.id,
    version: item.version,
    size: content.size,
  };
}

/** A file of the space's drive by its id, as a part of a message. Throws 400 `FILE_NOT_FOUND`. */
export async function attachById(on: On, { spaceId, id }: { spaceId: string; id: string }): Promise<StoredPart> {
  const item = await driveModels(on).DriveItem.find(id);
  const place = item?.spaceId === spaceId ? await placeOf(on, item) : undefined;
  if (!item?.content || !place?.isLive || place.containerId !== driveContainerId) {
    throw new DomainError(
      'invalid',
      'FILE_NOT_FOUND',
      `There is no file with the id ${id.slice(0, 60)} in this space.`,
    );
  }
  const { contentType: mimeType, size } = item.content;
  const { path, containerId } = place;
  const data = { path, containerId, mimeType, fileName: item.name, itemId: item.id, version: item.version, size };
  return { type: 'data-file', data };
}

/** A thread's files belong to the thread's owner. Other containers belong to the whole space. */
async function mayRead(on: On, containerId: string, spaceId: string, userId: string): Promise<boolean> {
  const container = parseContainerId(containerId);
  if (container?.kind !== 'thread') return container !== undefined;
  const thread = await chatModels(on).Thread.open(container.threadId);
  return thread !== null && thread.userId === userId && thread.spaceId === spaceId;
}

/** An invalid path names no file. */
function namesIn(path: string, missing: () => DomainError): string[] {
  try {
    return parsePath(path);
  } catch {
    throw missing();
  }
}

function refused(kind: 'notFound' | 'unprocessable', code: string, detail: string, pointer: string): DomainError {
  return new DomainError(kind, code, detail, { errors: [{ pointer, detail }] });
}

/** An attached file's content when it was attached; undefined when that version is gone. */
export async function contentOfAttached(on: On, file: AttachedFile, spaceId: string): Promise<Content | undefined> {
  const { DriveItem, DriveVersion } = driveModels(on);
  const item = await DriveItem.find(file.itemId);
  if (item === null || item.spaceId !== spaceId || !(await placeOf(on, item)).isLive) return undefined;
  if (item.version === file.version) return item.content;
  const version = await DriveVersion.findOne({ where: { itemId: item.id, version: file.version } });
  return version?.content;
}

/** The inputs that a model must support to read the whole message. */
export function needsOf(parts: readonly StoredPart[]): { images: boolean; pdf: boolean } {
  const types = parts.flatMap((part) => {
    if (part.type === 'data-file') return [part.data.mimeType ?? ''];
    return part.type === 'file' ? [part.mediaType] : [];
  });
  return { images: types.some(isImageType), pdf: types.some(isPdfType) };
}

/**
 * The bytes of a `data:` URL (RFC 2397, as browsers read it); undefined when it is not one, or its base64 is broken.
 * Nothing is fetched.
 */
export function readDataUrl(url: string): Buffer | undefined {
  const comma = url.indexOf(',');
  if (!/^data:/i.test(url) || comma < 0) return undefined;
  const [body = ''] = url.slice(comma + 1).split('#', 1);
  const bytes = percentDecoded(body);
  if (!/;\s*base64\s*$/i.test(url.slice(0, comma))) return bytes;
  const base64 = bytes.toString('latin1').replace(/\s/g, '');
  const isWhole = /^[A-Za-z0-9+/]*={0,2}$/.test(base64) && base64.replace(/=+$/, '').length % 4 !== 1;
  return isWhole ? Buffer.from(base64, 'base64') : undefined;
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}
