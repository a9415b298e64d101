import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { asLines, type Git } from '../process/git.ts';
import type { Remote } from '../remote/remote.ts';
import { gitError } from '../rules/failures.ts';
import type { GitFilter } from '../types.ts';

export const fetchCommand = ['fetch', '--progress', '--no-write-fetch-head', '--no-recurse-submodules'];
/** Ids per fetch. A broken fetch keeps the objects that arrived, so a request may be large. */
const maxAsked = 50_000;
/** Each level of folders needs a round. A remote that leaves objects out causes more. */
const maxRounds = 500;

interface Reachable {
  filter: GitFilter | null;
  /** Ids of objects, or all refs. */
  roots: readonly string[] | 'all';
}

/**
 * Fetches all missing objects, and then the objects that they refer to. Folders come first, then all files at once:
 * versions of a file take much less room in one pack.
 */
export async function fetchMissing(git: Git, remote: Remote, { filter, roots }: Reachable): Promise<void> {
  await fetchKind(git, remote, { filter: 'blob:none', roots });
  if (filter !== 'blob:none') await fetchKind(git, remote, { filter, roots });
}

/** The cause of a failure in which the remote's answer was incomplete. */
export const incomplete = new Error('The remote does not send all objects that it is asked for.');

export async function fetchKind(git: Git, remote: Remote, reachable: Reachable): Promise<void> {
  let before: Pick<Missing, 'count' | 'sum'> | undefined;
  for (let round = 0; ; round += 1) {
    await using missing = await listMissing(git, reachable);
    const { count, sum } = missing;
    if (count === 0) return;
    // Stop if the remote answers but sends nothing new. Otherwise this loop would never end.
    const isSame = count === before?.count && sum.equals(before.sum);
    if (isSame || round > maxRounds) {
      const detail = 'The remote does not send all objects of the repository.';
      throw gitError('GIT_REMOTE_FAILED', detail, { cause: incomplete });
    }
    for await (const ids of missing.inParts(maxAsked)) await fetchObjects(git, remote, ids);
    before = { count, sum };
  }
}

/**
 * Fetches exactly these objects, without negotiation: telling the server which objects are here costs more than it
 * saves. A server omits an object that is also in a requested folder, so the caller checks again what is missing.
 */
export async function fetchObjects(git: Git, remote: Remote, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += maxAsked) {
    await remote.do(git, [...fetchCommand, '--no-tags', '--filter=tree:0', '--stdin', '--end-of-options', 'origin'], {
      accepts: /did not send all necessary objects/,
      settings: { 'fetch.negotiationAlgorithm': 'noop' },
      input: asLines(ids.slice(at, at + maxAsked)),
    });
  }
}

/** The missing objects that the roots refer to. Objects below these are not known yet. */
async function listMissing(git: Git, { filter, roots }: Reachable): Promise<Missing> {
  const filters = filter === null ? [] : [`--filter=${filter}`];
  const [which, input] = roots === 'all' ? ['--all'] : ['--stdin', asLines(roots)];
  const args = ['rev-list', '--objects', '--quiet', '--missing=print', ...filters, which];
  return Missing.in(await Listing.of(git, args, { input }));
}

/** `?`, an id, and the end of the line. */
const lineBytes = 42;

/** Ids of objects, in a file. */
class Missing implements AsyncDisposable {
  readonly count: number;
  /** The XOR of all lines: equal for the same ids in any order. */
  readonly sum: Buffer;
  readonly #listed: Listing;

  private constructor(listed: Listing, sum: Buffer) {
    this.#listed = listed;
    this.count = listed.bytes / lineBytes;
    this.sum = sum;
  }

  static async in(listed: Listing): Promise<Missing> {
    const sum = Buffer.alloc(lineBytes);
    let at = 0;
    for await (const chunk of listed.open()) {
      for (const byte of chunk as Buffer) {
        sum[at] = (sum[at] ?? 0) ^ byte;
        at = (at + 1) % lineBytes;
      }
    }
    return new Missing(listed, sum);
  }

  async *inParts(size: number): AsyncGenerator<string[]> {
    for (let from = 0; from < this.count; from += size) {
      const part = Buffer.alloc(Math.min(size, this.count - from) * lineBytes);
      await this.#listed.file.read(part, 0, part.length, from * lineBytes);
      const lines = part.toString('latin1').trimEnd().split('\n');
      yield lines.map((line) => line.slice(1));
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#listed[Symbol.asyncDispose]();
  }
}

const chunkBytes = 65_536;

/** The output of a git command in an unlinked temporary file, because it may not fit into memory. */
export class Listing implements AsyncDisposable {
  readonly file: FileHandle;
  readonly bytes: number;

  private constructor(file: FileHandle, bytes: number) {
    this.file = file;
    this.bytes = bytes;
  }

  static async of(git: Git, args: readonly string[], call: { input?: string | undefined } = {}): Promise<Listing> {
    const path = join(git.home, `list-${randomBytes(9).toString('hex')}`);
    const file = await open(path, 'wx+', 0o600);
    try {
      await rm(path);
      await git.do(args, { ...call, output: { descriptor: file.fd } });
      return new Listing(file, (await file.stat()).size);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** May be called more than once. */
  open(): Readable {
    return Readable.from(this.#chunks(), { objectMode: false });
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.bytes; ) {
      const { bytesRead, buffer } = await this.file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.file.close();
  }
}
