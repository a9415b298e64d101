import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { gitError } from '../rules/failures.ts';
import type { CloneSource, GitFilter } from '../types.ts';
import type { Git } from './git.ts';
import type { Remote } from './remote.ts';
import { configure, initRepository, namesIn, removeLeftovers } from './repository.ts';
import { salvagePacks } from './salvage.ts';

const fetchCommand = ['fetch', '--progress', '--no-write-fetch-head', '--no-recurse-submodules'];
/** Of ids that are asked for in one fetch. A fetch that is cut keeps what it has brought, so they may be many. */
const maxAsked = 10_000;
/** How often objects may turn out to be missing: once for each level of folders, and more where the remote is odd. */
const maxRounds = 500;

/** What a fetch of a clone brings: all branches, or the one that is wanted with few commits. */
export function refspecsOf(branch: string | null): string[] {
  if (branch !== null) return [`+refs/heads/${branch}:refs/remotes/origin/${branch}`];
  return ['+refs/heads/*:refs/remotes/origin/*', '+refs/tags/*:refs/tags/*'];
}

/**
 * Brings a remote's objects and refs into a repository of its own. The first time that is one fetch. When that has been
 * cut, what arrived of it is kept, and the next attempt asks for the commits alone, and then for each object that is
 * missing.
 */
export async function bring(git: Git, remote: Remote, source: CloneSource, branch: string): Promise<void> {
  const { depth, filter } = source;
  // What is larger than a limit cannot be told from what is missing.
  const canResume = filter === undefined || filter === 'blob:none';
  const kept = canResume ? await keepArrived(git) : 0;
  const refspecs = refspecsOf(depth === undefined ? null : branch);
  const depths = depth === undefined ? [] : [`--depth=${depth}`];
  if (kept > 0) return resume(git, remote, { refspecs, depths, filter: filter ?? null, kept });
  await initRepository(git, filter ?? null);
  const filters = filter === undefined ? [] : [`--filter=${filter}`];
  await remote.do(git, [...fetchCommand, ...depths, ...filters, 'origin', ...refspecs]);
}

/** How many objects of an earlier attempt can be used. */
async function keepArrived(git: Git): Promise<number> {
  await removeLeftovers(git, { keepTemporaryPacks: true });
  const before = (await namesIn(join(git.dir, 'objects', 'pack'))).some((name) => name.endsWith('.pack'));
  const salvaged = await salvagePacks(git);
  if (!before && salvaged === 0) return 0;
  const counted = await git.run(['count-objects', '-v']);
  return Number(/^in-pack: (\d+)$/m.exec(String(counted.output))?.[1] ?? 0);
}

interface Resumption {
  refspecs: string[];
  depths: string[];
  filter: GitFilter | null;
  kept: number;
}

async function resume(git: Git, remote: Remote, { refspecs, depths, filter, kept }: Resumption): Promise<void> {
  remote.tell('connecting', { keptObjects: kept });
  await configure(git, 'tree:0');
  await remote.do(git, [...fetchCommand, ...depths, '--filter=tree:0', 'origin', ...refspecs]);
  let last = Number.POSITIVE_INFINITY;
  for (let round = 0; ; round += 1) {
    const missing = await listMissing(git, { filter, roots: ['--all'] });
    if (missing.length === 0) break;
    // A remote that answers and brings nothing would be asked for ever.
    if (round >= maxRounds || (round > 0 && missing.length === last && round % 10 === 0)) {
      throw gitError('GIT_REMOTE_FAILED', 'The remote does not send all objects of the repository.');
    }
    last = missing.length;
    await fetchObjects(git, remote, missing);
  }
  await becomeOrdinary(git, filter);
}

/** The objects that belong to roots and are not here; what they would refer to is not known yet. */
export async function listMissing(
  git: Git,
  { filter, roots }: { filter: GitFilter | null; roots: readonly string[] },
): Promise<string[]> {
  const filters = filter === null ? [] : [`--filter=${filter}`];
  const listed = await git.text(['rev-list', '--objects', '--quiet', '--missing=print', ...filters, ...roots]);
  return listed
    .split('\n')
    .filter((line) => line.startsWith('?'))
    .map((line) => line.slice(1));
}

/** Asks for exactly these objects, and without telling what is here: that would cost more than it saves. */
export async function fetchObjects(git: Git, remote: Remote, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += maxAsked) {
    await remote.do(git, [...fetchCommand, '--no-tags', '--filter=tree:0', '--stdin', 'origin'], {
      settings: { 'fetch.negotiationAlgorithm': 'noop' },
      input: ids
        .slice(at, at + maxAsked)
        .map((id) => `${id}\n`)
        .join(''),
    });
  }
}

/** What came in pieces was not checked as a whole. */
async function becomeOrdinary(git: Git, filter: GitFilter | null): Promise<void> {
  await configure(git, filter);
  const packs = join(git.dir, 'objects', 'pack');
  if (filter === null) {
    for (const name of await namesIn(packs)) if (name.endsWith('.promisor')) await rm(join(packs, name));
  }
  await git.do(['fsck', '--full', '--strict', '--no-dangling', '--no-progress', '--no-reflogs']);
  await git.do(['repack', '-a', '-d', '-q']);
}
