import type { Readable } from 'node:stream';
import { isText, sampleBytes } from '../../../integrations/storage/contentType.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import type { DriveItem } from '../../../models/drive/driveItem.ts';
import { DomainError } from '../../../models/errors.ts';
import { firstOf } from '../../../models/text.ts';

/** A run of lines of a file. */
export interface Lines {
  /** From 1. */
  firstLine: number;
  lines: string[];
  /** Whether there are more lines after these, or the last one was cut. */
  hasMore: boolean;
}

/** The most that a model reads at once, so that the result is not moved into a file again. */
const maxCharacters = 48_000;
const maxLineCharacters = 2_000;

/**
 * Reads the requested lines of a text file, in memory that does not grow with the file. Throws 422 `NOT_TEXT` for
 * anything that is not text.
 */
export async function readLines(
  store: Pick<ObjectStore, 'read'>,
  item: DriveItem,
  range: { firstLine: number; count: number },
  signal: AbortSignal,
): Promise<Lines> {
  const { firstLine, count } = range;
  const result: Lines = { firstLine, lines: [], hasMore: false };
  let characters = 0;
  let number = 0;
  for await (const line of linesOf(await open(store, item), signal)) {
    number += 1;
    if (number < firstLine) continue;
    const shown = line.length > maxLineCharacters ? `${firstOf(line, maxLineCharacters)}… [line cut]` : line;
    characters += shown.length + 1;
    if (result.lines.length === count || (characters > maxCharacters && result.lines.length > 0)) {
      result.hasMore = true;
      break;
    }
    result.lines.push(shown);
  }
  return result;
}

/** The whole of a text file. Throws when it is larger, or not text. */
export async function readWhole(
  store: Pick<ObjectStore, 'read'>,
  item: DriveItem,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  if ((item.size ?? 0) > maxBytes) {
    throw new DomainError('tooLarge', 'FILE_TOO_LARGE', `The file has more than ${maxBytes / 1_048_576} MiB.`);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of await open(store, item)) {
    signal.throwIfAborted();
    chunks.push(chunk as Buffer);
  }
  const bytes = Buffer.concat(chunks);
  if (!isText(bytes)) throw notText(item);
  return bytes.toString('utf8');
}

async function open(store: Pick<ObjectStore, 'read'>, item: DriveItem): Promise<Readable> {
  const content = item.content;
  if (content === undefined) throw new DomainError('conflict', 'NOT_A_FILE', 'The item is not a file.');
  if (content.size > 0) {
    const sample: Buffer[] = [];
    const end = Math.min(sampleBytes, content.size) - 1;
    for await (const chunk of await store.read(content.objectKey, { start: 0, end })) sample.push(chunk as Buffer);
    if (!isText(Buffer.concat(sample))) throw notText(item);
  }
  return store.read(content.objectKey);
}

async function* linesOf(stream: Readable, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  // A very long line, such as a minified file's, is kept only as far as it is shown.
  let rest = '';
  const keep = (text: string) => firstOf(text, maxLineCharacters * 2);
  for await (const chunk of stream) {
    signal.throwIfAborted();
    const pieces = decoder.decode(chunk as Buffer, { stream: true }).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      yield withoutReturn(rest + piece);
      rest = '';
    }
    rest = keep(rest + last);
  }
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

function notText(item: DriveItem): DomainError {
  const type = item.contentType ?? 'unknown';
  return new DomainError(
    'unprocessable',
    'NOT_TEXT',
    `${item.name} is not text (${type}), so it has no lines to read.`,
  );
}
