import { opendir } from 'node:fs/promises';
import { entryOf } from './entries.ts';

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
