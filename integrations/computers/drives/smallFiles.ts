import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../../base/errors.ts';
import { bodyOf } from '../holder/http/answers.ts';
import type { SmallFile } from './backend.ts';

const maxBodyBytes = 8 * 1_048_576;
const mostFiles = 256;
const lineEnd = 10;

/** Reads a request with several small files: a line of JSON that describes them, and then their bytes in that order. */
export async function smallFilesOf(req: IncomingMessage): Promise<SmallFile[]> {
  const body = await bodyOf(req, maxBodyBytes);
  const end = body.indexOf(lineEnd);
  const files = describedIn(body.subarray(0, Math.max(end, 0)).toString());
  let at = end + 1;
  const read = files.map((file) => {
    const write = writeOf(file);
    const bytes = body.subarray(at, at + write.sizeBytes);
    at += write.sizeBytes;
    return { write, bytes };
  });
  if (at !== body.length) throw invalid('The sizes of the files are not the size of the body.');
  return read;
}

function describedIn(line: string): Record<string, unknown>[] {
  try {
    const { files } = JSON.parse(line) as { files: unknown };
    if (Array.isArray(files) && files.length <= mostFiles && files.every((file) => typeof file === 'object' && file)) {
      return files as Record<string, unknown>[];
    }
  } catch {
    // Refused below.
  }
  throw invalid(`The body has no description of at most ${mostFiles} files.`);
}

function writeOf(file: Record<string, unknown>): SmallFile['write'] {
  const { parentId, name, itemId, session, executable } = file;
  const sizeBytes = numberIn(file, 'size');
  if (sizeBytes < 0) throw invalid('The size of a file is negative.');
  if (typeof parentId !== 'string' || parentId === '' || typeof name !== 'string' || name === '') {
    throw invalid('A file has no folder or no name.');
  }
  return {
    parentId,
    name,
    ...(typeof itemId === 'string' && itemId !== '' && { known: { itemId, version: numberIn(file, 'baseVersion') } }),
    modifiedAtMs: numberIn(file, 'modifiedAtMs'),
    executable: executable === true,
    ...(typeof session === 'string' && session !== '' && { session }),
    sizeBytes,
  };
}

function numberIn(file: Record<string, unknown>, name: string): number {
  const value = file[name];
  if (Number.isSafeInteger(value)) return value as number;
  throw invalid(`${name} of a file is not a whole number.`);
}

const invalid = (detail: string) => new DomainError('invalid', 'BODY_INVALID', detail);
