import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloneSource, GitFilter } from '../types.ts';
import type { Git } from './git.ts';
import { growFrom, isMostlyNewest } from './grow.ts';
import { fetchCommand, fetchMissing } from './missing.ts';
import type { Remote } from './remote.ts';
import { configure, initRepository, namesIn, removeLeftovers } from './repository.ts';
import { forgetResumes, isRefused, isStuck, mayGoOnAfter } from './resumes.ts';
import { salvagePacks } from './salvage.ts';

/** What a fetch of a clone brings: all branches, or the one that is wanted with few commits. */
export function refspecsOf(branch: string | null): string[] {
  if (branch !== null) return [`+refs/heads/${branch}:refs/remotes/origin/${branch}`];
  return ['+refs/heads/*:refs/remotes/origin/*', '+refs/tags/*:refs/tags/*'];
}

interface FetchedRefs {
  args: string[];
  call: { input: Buffer };
}

/** How a fetch is told what to bring, and what not, whichever bytes that is named by. */
export function fetchedRefs(refspecs: readonly string[], unusable: readonly Buffer[]): FetchedRefs {
  const input = Buffer.concat(unusable.flatMap((name) => [Buffer.from('^'), name, Buffer.from('\n')]));
  // Tags that git follows by itself come whatever is to be left out.
  const isTag = (name: string) => /^\+?refs\/tags\//.test(name);
  const followsNone = refspecs.some(isTag) || unusable.some((name) => isTag(name.toString('latin1')));
  const tags = followsNone ? ['--no-tags'] : [];
  return { args: [...tags, '--stdin', '--end-of-options', 'origin', ...refspecs], call: { input } };
}

/**
 * Brings a remote's objects and refs into a repository of its own. The first time that is one fetch. When that has been
 * cut, what arrived of it is kept, and the next attempt asks for what is missing: by telling what is here, where that is
 * the newest state of all files, else for the commits alone, and then for each object that is missing.
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
  await forgetResumes(git);
  if (isNew) await configure(git, filter ?? null);
  else await initRepository(git, filter ?? null);
  const filters = filter === undefined ? [] : [`--filter=${filter}`];
  try {
    await remote.do(git, [...fetchCommand, ...depths, ...filters, ...refs.args], refs.call);
  } catch (error) {
    // No attempt could use it.
    if (isRefused(error)) await rm(git.dir, { recursive: true, force: true });
    throw error;
  }
}

/** Goes on from what an earlier attempt has left. False where that is nothing, or is of no use: then it is begun anew. */
async function goOn(
  git: Git,
  remote: Remote,
  { depth, filter }: CloneSource,
  { branch, tip, refs, depths }: { branch: string; tip: string; refs: FetchedRefs; depths: string[] },
): Promise<boolean> {
  // What is larger than a limit cannot be told from what is missing.
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
    } else await fetchSkeleton(git, remote, depths, refs);
    await fetchMissing(git, remote, { filter: filter ?? null, roots: 'all' });
    await becomeOrdinary(git, filter ?? null);
    await forgetResumes(git);
    return true;
  } catch (error) {
    git.signal.throwIfAborted();
    if (remote.isSpent || mayGoOnAfter(error)) throw error;
    remote.tell('connecting', { keptObjects: 0 });
    return false;
  }
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

/** The commits alone, with all refs: from these it can be told what is missing. */
async function fetchSkeleton(git: Git, remote: Remote, depths: string[], refs: FetchedRefs): Promise<void> {
  // A commit that is here would pass for one whose history is, and git would not ask where a shallow clone ends.
  const anew = depths.length > 0 ? [...depths, '--refetch'] : [];
  await remote.do(git, [...fetchCommand, ...anew, '--filter=tree:0', ...refs.args], refs.call);
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
