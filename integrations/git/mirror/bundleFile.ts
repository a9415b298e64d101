import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gitError } from '../rules/failures.ts';
import type { MadeBundle, RefManifest } from '../types.ts';
import type { Git } from './git.ts';
import { idsOf, onlyPack } from './repository.ts';

const maxHeader = 16 * 1_048_576;

export interface Wanted {
  manifest: RefManifest;
  /** Objects whose history is wanted; without them, those of the manifest. */
  roots?: readonly string[];
  /** Commits, or other objects of the repository, that the receiver has with all that belongs to them. */
  have: readonly string[];
}

/** Makes a bundle of what is wanted, in `folder`; null where that is no object at all. */
export async function makeBundle(git: Git, folder: string, wanted: Wanted): Promise<MadeBundle | null> {
  const { manifest, have, roots = idsOf(manifest) } = wanted;
  if (roots.length === 0) return null;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${randomBytes(9).toString('hex')}.bundle`);
  try {
    const header = headerOf(manifest, have);
    const packStart = Buffer.byteLength(header);
    let count: number;
    await using file = await open(path, 'wx+', 0o600);
    {
      await file.writeFile(header);
      const isPartial = manifest.filter !== null;
      const options = ['--revs', '--stdout', '--thin', '--delta-base-offset', '--quiet'];
      // Git goes on where we have stopped: the file's position is one for both.
      await git.do(['pack-objects', ...options, ...(isPartial ? ['--missing=allow-promisor'] : [])], {
        input: [...roots, ...have.map((id) => `^${id}`)].map((line) => `${line}\n`).join(''),
        output: { descriptor: file.fd },
      });
      const { buffer } = await file.read(Buffer.alloc(4), 0, 4, packStart + 8);
      count = buffer.readUInt32BE();
    }
    if (count === 0) {
      await rm(path);
      return null;
    }
    const { size } = await stat(path);
    return {
      path,
      bytes: size,
      manifest,
      open: () => createReadStream(path),
      [Symbol.asyncDispose]: () => rm(path, { force: true }),
    };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/**
 * A bundle of all there is, read from the pack where it lies: after a clone there is one pack of everything, and to make
 * another of it takes as long as to store it. Null where it takes more than one pack.
 */
export async function bundleOfOnlyPack(
  git: Git,
  manifest: RefManifest,
): Promise<Pick<MadeBundle, 'bytes' | 'open'> | null> {
  if (manifest.filter !== null || idsOf(manifest).length === 0) return null;
  const name = await onlyPack(git);
  return name === undefined ? null : bundleOfPack(git, manifest, name);
}

/** A bundle of all there is, which is in one pack. */
export async function bundleOfPack(
  git: Git,
  manifest: RefManifest,
  name: string,
): Promise<Pick<MadeBundle, 'bytes' | 'open'>> {
  const header = Buffer.from(headerOf(manifest, []));
  const pack = join(git.dir, 'objects', 'pack', `${name}.pack`);
  async function* bytes() {
    yield header;
    yield* createReadStream(pack);
  }
  return {
    bytes: header.length + (await stat(pack)).size,
    open: () => Readable.from(bytes(), { objectMode: false }),
  };
}

/** Version 3 says that objects may be missing; every git that can clone with a filter knows it. */
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

/** The pack in a bundle, or in a stream that is nothing but a pack. Refs are told otherwise: the header's are not used. */
export async function packIn(stream: Readable): Promise<Readable> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let held: Buffer = Buffer.alloc(0);
  let start: number | undefined;
  while (start === undefined) {
    start = packStart(held);
    if (start !== undefined) break;
    if (held.length > maxHeader) throw notABundle();
    const next = await chunks.next();
    if (next.done) throw notABundle();
    held = Buffer.concat([held, next.value]);
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
