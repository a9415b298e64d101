import { isUtf8 } from 'node:buffer';
import type { BigIntStats } from 'node:fs';
import { lstat, opendir, readlink } from 'node:fs/promises';

/** What a path is, itself: a link at its end is not followed. */
export async function entryOf(path: Buffer, name: Buffer = nameOf(path)) {
  const stats = await lstat(path, { bigint: true });
  const type = typeOf(stats);
  return {
    ...namesOf(name),
    type,
    size: sizeOf(stats),
    mode: Number(stats.mode) & 0o7777,
    modifiedAt: timeOf(stats),
    etag: etagOf(stats),
    ...(type === 'symlink' && { target: (await readlink(path, { encoding: 'buffer' })).toString() }),
  };
}

/** Changes whenever the file does: each write makes a new one, and the kernel counts in nanoseconds. */
export function etagOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `"${ino.toString(36)}-${size.toString(36)}-${mtimeNs.toString(36)}-${ctimeNs.toString(36)}"`;
}

/** A file of holes may claim more bytes than a number counts exactly: it then has the most that one does. */
export function sizeOf({ size }: BigIntStats): number {
  return Math.min(Number(size), Number.MAX_SAFE_INTEGER);
}

/** A file may claim any time; one that no clock has becomes the nearest. */
export function timeOf({ mtimeMs }: BigIntStats): string {
  const limit = 253_402_300_799_000;
  return new Date(Math.max(0, Math.min(Number(mtimeMs), limit))).toISOString();
}

function typeOf(stats: BigIntStats): 'file' | 'directory' | 'symlink' | 'other' {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  return stats.isSymbolicLink() ? 'symlink' : 'other';
}

function namesOf(name: Buffer): { name: string; nameBytes?: string } {
  return isUtf8(name) ? { name: name.toString() } : { name: name.toString(), nameBytes: name.toString('base64') };
}

function nameOf(path: Buffer): Buffer {
  let end = path.length;
  while (end > 1 && path[end - 1] === 0x2f) end--;
  return path.subarray(path.lastIndexOf('/', end - 1) + 1, end);
}

const maxPage = 1_000;

/** A page of a folder, by name. Of a folder however large, it holds one page in memory. */
export async function listFolder(path: Buffer, { after, limit }: { after?: string; limit: number }) {
  const start = after === undefined ? undefined : Buffer.from(after, 'base64url');
  const size = Math.min(Math.max(1, limit), maxPage);
  const { names, hasMore } = await firstNames(path, start, size);
  const entries = await Promise.all(
    names.map((name) =>
      // What has been deleted in the meantime is left out.
      entryOf(Buffer.concat([path, Buffer.from('/'), name]), name).catch(() => undefined),
    ),
  );
  const last = names.at(-1);
  return {
    entries: entries.filter((entry) => entry !== undefined),
    nextCursor: hasMore && last !== undefined ? last.toString('base64url') : null,
  };
}

async function firstNames(path: Buffer, start: Buffer | undefined, size: number) {
  let names: Buffer[] = [];
  let hasMore = false;
  const cut = () => {
    names.sort(Buffer.compare);
    hasMore ||= names.length > size;
    names = names.slice(0, size);
  };
  // In Node, `opendir` with names as bytes gives them so, whatever its types say.
  const folder = await opendir(path, { encoding: 'buffer' as BufferEncoding, bufferSize: 256 });
  for await (const { name } of folder as AsyncIterable<{ name: unknown }>) {
    const bytes = name as Buffer;
    if (start === undefined || Buffer.compare(bytes, start) > 0) names.push(bytes);
    if (names.length >= 4 * maxPage) cut();
  }
  cut();
  return { names, hasMore };
}
