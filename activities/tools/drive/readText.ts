import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { DomainError } from '../../../base/errors.ts';
import { isText, sampleBytes } from '../../../integrations/storage/contentType.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { type Lines, takeLines } from '../lines.ts';

/**
 * Reads the requested lines of a text file, in memory that does not grow with the file. Throws 422 `NOT_TEXT` for other
 * files.
 */
export async function readLines(
  store: Pick<ObjectStore, 'read'>,
  item: DriveItem,
  range: { firstLine: number; count: number },
  signal: AbortSignal,
): Promise<Lines> {
  return takeLines(await open(store, item), range, signal);
}

/** A whole text file. Throws if it is too large or not text. */
export async function readWhole(
  store: Pick<ObjectStore, 'read'>,
  item: DriveItem,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  if ((item.size ?? 0) > maxBytes) {
    throw new DomainError('tooLarge', 'FILE_TOO_LARGE', `The file is larger than ${maxBytes / 1_048_576} MiB.`);
  }
  const bytes = await buffer(await open(store, item));
  signal.throwIfAborted();
  if (!isText(bytes)) throw notText(item);
  return bytes.toString('utf8');
}

async function open(store: Pick<ObjectStore, 'read'>, item: DriveItem): Promise<Readable> {
  const content = item.content;
  if (content === undefined) throw new DomainError('conflict', 'NOT_A_FILE', 'The item is not a file.');
  if (content.size > 0) {
    const end = Math.min(sampleBytes, content.size) - 1;
    if (!isText(await buffer(await store.read(content.objectKey, { start: 0, end })))) throw notText(item);
  }
  return store.read(content.objectKey);
}

function notText(item: DriveItem): DomainError {
  const type = item.contentType ?? 'unknown';
  return new DomainError(
    'unprocessable',
    'NOT_TEXT',
    `${item.name} is not text (${type}), so it has no lines to read.`,
  );
}
