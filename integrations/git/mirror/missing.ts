import { gitError } from '../rules/failures.ts';
import type { GitFilter } from '../types.ts';
import type { Git } from './git.ts';
import { Listing } from './listing.ts';
import type { Remote } from './remote.ts';

export const fetchCommand = ['fetch', '--progress', '--no-write-fetch-head', '--no-recurse-submodules'];
/** Of ids that are asked for in one fetch. A fetch that is cut keeps what it has brought, so they may be many. */
const maxAsked = 50_000;
/** How often objects may turn out to be missing: once for each level of folders, and more where the remote is odd. */
const maxRounds = 500;

interface Reachable {
  filter: GitFilter | null;
  /** Objects by their ids, or all that refs name. */
  roots: readonly string[] | 'all';
}

/**
 * Asks for all objects that are missing, and then for what these refer to: first all folders, then all files at once,
 * for versions of a file take much less room together.
 */
export async function fetchMissing(git: Git, remote: Remote, { filter, roots }: Reachable): Promise<void> {
  await fetchKind(git, remote, { filter: 'blob:none', roots });
  if (filter !== 'blob:none') await fetchKind(git, remote, { filter, roots });
}

/** The cause of a failure of a remote that has answered, and whose answer was incomplete. */
export const incomplete = new Error('The remote does not send all objects that it is asked for.');

export async function fetchKind(git: Git, remote: Remote, reachable: Reachable): Promise<void> {
  let before: Missing | undefined;
  for (let round = 0; ; round += 1) {
    await using missing = await listMissing(git, reachable);
    if (missing.count === 0) return;
    // A remote that answers and brings nothing would be asked for ever.
    const isSame = missing.count === before?.count && missing.sum.equals(before.sum);
    if (isSame || round > maxRounds) {
      throw gitError('GIT_REMOTE_FAILED', 'The remote does not send all objects of the repository.', {
        cause: incomplete,
      });
    }
    for await (const ids of missing.inParts(maxAsked)) await fetchObjects(git, remote, ids);
    before = missing;
  }
}

/** `?`, an id, and the end of the line. */
const lineBytes = 42;

/** Ids of objects, in a file. */
class Missing implements AsyncDisposable {
  readonly count: number;
  /** The same for the same ids, in whatever order. */
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
      yield part
        .toString('latin1')
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(1));
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#listed[Symbol.asyncDispose]();
  }
}

/** The objects that belong to roots and are not here; what they would refer to is not known yet. */
async function listMissing(git: Git, { filter, roots }: Reachable): Promise<Missing> {
  const filters = filter === null ? [] : [`--filter=${filter}`];
  const [which, input] = roots === 'all' ? ['--all'] : ['--stdin', roots.map((root) => `${root}\n`).join('')];
  const args = ['rev-list', '--objects', '--quiet', '--missing=print', ...filters, which];
  return Missing.in(await Listing.of(git, args, { input }));
}

/**
 * Asks for exactly these objects, and without telling what is here: that would cost more than it saves. A server leaves
 * out an object that is also within a folder that is asked for; who asked sees what is still missing.
 */
export async function fetchObjects(git: Git, remote: Remote, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += maxAsked) {
    await remote.do(git, [...fetchCommand, '--no-tags', '--filter=tree:0', '--stdin', '--end-of-options', 'origin'], {
      accepts: /did not send all necessary objects/,
      settings: { 'fetch.negotiationAlgorithm': 'noop' },
      input: ids
        .slice(at, at + maxAsked)
        .map((id) => `${id}\n`)
        .join(''),
    });
  }
}
