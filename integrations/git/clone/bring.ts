import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { Note } from '../mirror/note.ts';
import { configure, initRepository, namesIn, packFolder, packsIn, removeLeftovers } from '../mirror/repository.ts';
import type { Git } from '../process/git.ts';
import type { Remote } from '../remote/remote.ts';
import { isUnexplained } from '../rules/describeFailure.ts';
import type { GitFailure } from '../rules/failures.ts';
import type { CloneSource, GitFilter } from '../types.ts';
import { growFrom, isMostlyNewest } from './grow.ts';
import { fetchCommand, fetchMissing, incomplete } from './missing.ts';
import { salvagePacks } from './salvage.ts';

/** The refs that a clone fetches: one branch, or all branches and tags. */
export function refspecsOf(branch: string | null): string[] {
  if (branch !== null) return [`+refs/heads/${branch}:refs/remotes/origin/${branch}`];
  return ['+refs/heads/*:refs/remotes/origin/*', '+refs/tags/*:refs/tags/*'];
}

interface FetchedRefs {
  args: string[];
  call: { input: Buffer };
}

/**
 * Arguments and input of a fetch that excludes the `unusable` refs. Their names may be any bytes, so they go to stdin.
 */
export function fetchedRefs(refspecs: readonly string[], unusable: readonly Buffer[]): FetchedRefs {
  const input = Buffer.concat(unusable.flatMap((name) => [Buffer.from('^'), name, Buffer.from('\n')]));
  // Automatic tag following would bring tags even if they are excluded.
  const isTag = (name: string) => /^\+?refs\/tags\//.test(name);
  const followsNone = refspecs.some(isTag) || unusable.some((name) => isTag(name.toString('latin1')));
  const tags = followsNone ? ['--no-tags'] : [];
  return { args: [...tags, '--stdin', '--end-of-options', 'origin', ...refspecs], call: { input } };
}

/**
 * Fetches a remote's objects and refs into the partial repository. The first attempt is one fetch. If the connection
 * breaks, the objects that arrived are kept, and the next attempt asks for the rest. If these are mostly the newest
 * versions of files, git tells the server that it has them and deepens from there. Otherwise git fetches only the
 * commits, and then each missing object.
 */
export async function bring(
  git: Git,
  remote: Remote,
  source: CloneSource,
  { branch, tip, unusable, isNew }: { branch: string; tip: string; unusable: readonly Buffer[]; isNew: boolean },
): Promise<void> {
  const { depth, filter } = source;
  const refs = fetchedRefs(refspecsOf(depth === undefined ? null : branch), unusable);
  const depths = depth === undefined ? [] : [`--depth=${depth}`];
  if (!isNew && (await goOn(git, remote, source, { branch, tip, refs, depths }))) return;
  await resumesOf(git).forget();
  if (isNew) await configure(git, filter ?? null);
  else await initRepository(git, filter ?? null);
  const filters = filter === undefined ? [] : [`--filter=${filter}`];
  try {
    await remote.do(git, [...fetchCommand, ...depths, ...filters, ...refs.args], refs.call);
  } catch (error) {
    // If git refuses an object, no later attempt can use the objects that arrived.
    const isRefused = error instanceof DomainError && error.code === ('GIT_OBJECTS_REFUSED' satisfies GitFailure);
    if (isRefused) await rm(git.dir, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Continues from the objects of an earlier attempt. False if there are none or they are unusable: the clone starts
 * anew.
 */
async function goOn(
  git: Git,
  remote: Remote,
  { depth, filter }: CloneSource,
  { branch, tip, refs, depths }: { branch: string; tip: string; refs: FetchedRefs; depths: string[] },
): Promise<boolean> {
  // With a size limit, git cannot tell an object that was left out from a missing one.
  if (filter !== undefined && filter !== 'blob:none') return false;
  try {
    const kept = await keepArrived(git);
    if (kept === 0 || (await isStuck(git, kept))) return false;
    remote.tell('connecting', { keptObjects: kept });
    await configure(git, 'tree:0');
    const isWhole = depth === undefined && filter === undefined;
    if (isWhole && (await isMostlyNewest(git, remote, tip))) {
      await growFrom(git, remote, branch, tip);
      await remote.do(git, [...fetchCommand, '--no-filter', ...refs.args], refs.call);
    } else {
      // Git assumes that a kept commit has all its history, and would not ask for the boundary of a shallow clone.
      const anew = depths.length > 0 ? [...depths, '--refetch'] : [];
      await remote.do(git, [...fetchCommand, ...anew, '--filter=tree:0', ...refs.args], refs.call);
    }
    await fetchMissing(git, remote, { filter: filter ?? null, roots: 'all' });
    await becomeOrdinary(git, filter ?? null);
    await resumesOf(git).forget();
    return true;
  } catch (error) {
    git.signal.throwIfAborted();
    if (remote.isSpent || mayGoOnAfter(error)) throw error;
    remote.tell('connecting', { keptObjects: 0 });
    return false;
  }
}

/** Returns how many objects of an earlier attempt can be used. */
async function keepArrived(git: Git): Promise<number> {
  await removeLeftovers(git, { keepTemporaryPacks: true });
  const before = await packsIn(git);
  const salvaged = await salvagePacks(git);
  if (before.length === 0 && salvaged === 0) return 0;
  const counted = await git.run(['count-objects', '-v']);
  return Number(/^in-pack: (\d+)$/m.exec(String(counted.output))?.[1] ?? 0);
}

/** Git has not checked the objects of several attempts as a whole. Checks them, and packs them into one pack. */
async function becomeOrdinary(git: Git, filter: GitFilter | null): Promise<void> {
  await configure(git, filter);
  const packs = packFolder(git);
  if (filter === null) {
    for (const name of await namesIn(packs)) if (name.endsWith('.promisor')) await rm(join(packs, name));
  }
  await git.do(['fsck', '--full', '--strict', '--no-dangling', '--no-progress', '--no-reflogs']);
  await git.do(['repack', '-a', '-d', '-q']);
}

/** How often in a row a clone may continue from the same objects without progress. */
const mostInVain = 3;

interface Resumes {
  /** How many objects the last attempt continued from. */
  kept: number;
  inVain: number;
}

const resumesOf = (git: Git) => new Note<Resumes>(git.home, 'resumes');

/**
 * Records that a clone is about to continue from `kept` objects. True after too many attempts without progress: the
 * server may break off at every request for missing objects, or each attempt may end this process.
 */
async function isStuck(git: Git, kept: number): Promise<boolean> {
  const before = await resumesOf(git).read();
  const inVain = before !== undefined && kept <= before.kept ? before.inVain + 1 : 0;
  await resumesOf(git).write({ kept, inVain });
  return inVain >= mostInVain;
}

/** Failures of the network, the remote, this machine or the credential. The objects that arrived are not to blame. */
const outside: readonly string[] = [
  'GIT_REMOTE_FAILED',
  'GIT_REMOTE_TOO_SLOW',
  'GIT_REMOTE_NOT_FOUND',
  'GIT_REMOTE_FORBIDDEN',
  'GIT_AUTHENTICATION_FAILED',
  'GIT_FAILED',
  'GIT_DISK_FULL',
  'GIT_NOT_INSTALLED',
] satisfies GitFailure[];

/** Whether a failed clone may later continue from the objects that it has. */
function mayGoOnAfter(error: unknown): boolean {
  if (!(error instanceof DomainError)) return (error as NodeJS.ErrnoException).code === 'ENOSPC';
  return outside.includes(error.code) && !isUnexplained(error) && error.cause !== incomplete;
}
