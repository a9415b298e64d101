import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { asLines, type Git } from '../process/git.ts';
import { gitError } from '../rules/failures.ts';
import type { MadeBundle, RefManifest } from '../types.ts';
import { idsOf, packFolder } from './repository.ts';

const maxHeader = 16 * 1_048_576;

export interface Wanted {
  manifest: RefManifest;
  /** Objects whose history is wanted. By default these are the manifest's. */
  roots?: readonly string[];
  /** Commits or other objects that the receiver has, with all objects that they refer to. */
  have: readonly string[];
}

/** Makes a bundle of the wanted objects in `folder`; null if there are none. */
export async function makeBundle(git: Git, folder: string, wanted: Wanted): Promise<MadeBundle | null> {
  const { manifest, have, roots = idsOf(manifest) } = wanted;
  if (roots.length === 0) return null;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${randomBytes(9).toString('hex')}.bundle`);
  try {
    const header = headerOf(manifest, have);
    await using file = await open(path, 'wx+', 0o600);
    await file.writeFile(header);
    const options = ['--revs', '--stdout', '--thin', '--delta-base-offset', '--quiet'];
    const missing = manifest.filter === null ? [] : ['--missing=allow-promisor'];
    // Git inherits the file's position, and writes after the header.
    await git.do(['pack-objects', ...options, ...missing], {
      input: asLines([...roots, ...have.map((id) => `^${id}`)]),
      output: { descriptor: file.fd },
    });
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, Buffer.byteLength(header) + 8);
    if (buffer.readUInt32BE() === 0) {
      await rm(path);
      return null;
    }
    return {
      path,
      bytes: (await file.stat()).size,
      open: () => createReadStream(path),
      [Symbol.asyncDispose]: () => rm(path, { force: true }),
    };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** A bundle of a pack that has all objects. It is streamed without a file. */
export async function bundleOfPack(
  git: Git,
  manifest: RefManifest,
  name: string,
): Promise<Pick<MadeBundle, 'bytes' | 'open'>> {
  const header = Buffer.from(headerOf(manifest, []));
  const pack = join(packFolder(git), `${name}.pack`);
  async function* bytes() {
    yield header;
    yield* createReadStream(pack);
  }
  return {
    bytes: header.length + (await stat(pack)).size,
    open: () => Readable.from(bytes(), { objectMode: false }),
  };
}

/** Version 3 allows missing objects. Every git that can clone with a filter knows it. */
function headerOf(manifest: RefManifest, have: readonly string[]): string {
  const { refs, filter, head } = manifest;
  const headId = refs[head] ?? (head.startsWith('refs/') ? undefined : head);
  const lines = [
    ...(filter === null ? ['# v2 git bundle'] : ['# v3 git bundle', '@object-format=sha1', `@filter=${filter}`]),
    ...have.map((id) => `-${id}`),
    ...Object.entries(refs).map(([name, id]) => `${id} ${name}`),
    ...(headId === undefined ? [] : [`${headId} HEAD`]),
  ];
  return `${lines.join('\n')}\n\n`;
}

/** The pack in a bundle, or in a stream that is a bare pack. The refs of the header are ignored. */
export async function packIn(stream: Readable): Promise<Readable> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let held: Buffer = Buffer.alloc(0);
  let start = packStart(held);
  while (start === undefined) {
    if (held.length > maxHeader) throw notABundle();
    const next = await chunks.next();
    if (next.done) throw notABundle();
    held = Buffer.concat([held, next.value]);
    start = packStart(held);
  }
  const first = held.subarray(start);
  async function* rest() {
    try {
      if (first.length > 0) yield first;
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
    } finally {
      stream.destroy();
    }
  }
  return Readable.from(rest(), { objectMode: false });
}

function packStart(held: Buffer): number | undefined {
  if (held.length < 16) return undefined;
  if (held.subarray(0, 4).toString('latin1') === 'PACK') return 0;
  if (!/^# v[23] git bundle\n/.test(held.subarray(0, 16).toString('latin1'))) throw notABundle();
  const end = held.indexOf('\n\n');
  return end < 0 ? undefined : end + 2;
}

function notABundle() {
  return gitError('GIT_OBJECTS_REFUSED', 'This is not a bundle of git.');
}
