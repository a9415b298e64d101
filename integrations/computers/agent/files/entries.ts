import { isUtf8 } from 'node:buffer';
import type { BigIntStats } from 'node:fs';
import { lstat, opendir, readlink } from 'node:fs/promises';

/** Describes a path. A link at its end is not followed. */
export async function entryOf(path: Buffer, name: Buffer = nameOf(path)) {
  const stats = await lstat(path, { bigint: true });
  const type = typeOf(stats);
  return {
    name: name.toString(),
    ...(!isUtf8(name) && { nameBytes: name.toString('base64') }),
    type,
    size: sizeOf(stats),
    mode: Number(stats.mode) & 0o7777,
    modifiedAt: timeOf(stats),
    etag: etagOf(stats),
    ...(type === 'symlink' && { target: (await readlink(path, { encoding: 'buffer' })).toString() }),
  };
}

/** Changes with every change of the file: each write makes a new inode, and the kernel's times count nanoseconds. */
export function etagOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `"${ino.toString(36)}-${size.toString(36)}-${mtimeNs.toString(36)}-${ctimeNs.toString(36)}"`;
}

/** Caps the size at the largest safe integer, because a sparse file may claim more. */
export function sizeOf({ size }: BigIntStats): number {
  return Math.min(Number(size), Number.MAX_SAFE_INTEGER);
}

/** Clamps the time to the years 1970 to 9999, because a file may claim any time. */
export function timeOf({ mtimeMs }: BigIntStats): string {
  const limit = 253_402_300_799_000;
  return new Date(Math.max(0, Math.min(Number(mtimeMs), limit))).toISOString();
}

function typeOf(stats: BigIntStats): 'file' | 'directory' | 'symlink' | 'other' {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  return stats.isSymbolicLink() ? 'symlink' : 'other';
}

function nameOf(path: Buffer): Buffer {
  let end = path.length;
  while (end > 1 && path[end - 1] === 0x2f) end--;
  return path.subarray(path.lastIndexOf('/', end - 1) + 1, end);
}

const maxPage = 1_000;

/** Returns a page of a folder, sorted by name. Memory use does not grow with the folder. */
export async function listFolder(path: Buffer, { after, limit }: { after?: string; limit: number }) {
  const start = after === undefined ? undefined : Buffer.from(after, 'base64url');
  const size = Math.min(Math.max(1, limit), maxPage);
  const { names, hasMore } = await firstNames(path, start, size);
  const entries = await Promise.all(
    names.map((name) =>
      // Entries that were deleted in the meantime are left out.
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
  // With this encoding Node gives names as bytes, though its types say strings.
  const folder = await opendir(path, { encoding: 'buffer' as BufferEncoding, bufferSize: 256 });
  for await (const { name } of folder as AsyncIterable<{ name: unknown }>) {
    const bytes = name as Buffer;
    if (start === undefined || Buffer.compare(bytes, start) > 0) names.push(bytes);
    if (names.length >= 4 * maxPage) cut();
  }
  cut();
  return { names, hasMore };
}
