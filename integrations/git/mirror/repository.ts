import { isUtf8 } from 'node:buffer';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unfinished, writeDurably } from '../../../disk/durable.ts';
import { gitError, tooManyRefs } from '../rules/failures.ts';
import { isStorableRef } from '../rules/refName.ts';
import { linesOf } from '../rules/remoteRefs.ts';
import type { GitFilter, RefManifest, RefUpdate } from '../types.ts';
import type { Git } from './git.ts';

/** Makes an empty bare repository, in place of what may be there. */
export async function initRepository(git: Git, filter: GitFilter | null): Promise<void> {
  await rm(git.dir, { recursive: true, force: true });
  await mkdir(git.dir, { recursive: true, mode: 0o700 });
  await git.do(['init', '--quiet', '--bare']);
  await configure(git, filter);
}

/**
 * Writes the repository's own settings. With a filter, objects may be missing: git then takes the remote for where they
 * are, whose URL is told only to the calls that may go there.
 */
export async function configure(git: Git, filter: GitFilter | 'tree:0' | null): Promise<void> {
  const lines = ['[core]', `\trepositoryformatversion = ${filter === null ? 0 : 1}`, '\tbare = true'];
  if (filter !== null) {
    lines.push('[extensions]', '\tpartialClone = origin', '[remote "origin"]', '\tpromisor = true');
    lines.push(`\tpartialclonefilter = ${filter}`);
  }
  await writeDurably(join(git.dir, 'config'), `${lines.join('\n')}\n`);
}

/** Removes what processes that were killed have left: locks, and packs that never became one. */
export async function removeLeftovers(git: Git, options: { keepTemporaryPacks: boolean }): Promise<void> {
  const packs = join(git.dir, 'objects', 'pack');
  for (const name of await namesIn(packs)) {
    const isTemporary = name.startsWith('tmp_') || name.startsWith('.tmp-');
    const isLeft = isTemporary && !(options.keepTemporaryPacks && name.startsWith('tmp_pack_'));
    // Without it a pack would be kept apart for ever; the process that was about to use it is no more.
    if (isLeft || name.endsWith('.keep')) await rm(join(packs, name), { force: true });
  }
  for (const name of await namesIn(git.dir)) {
    if (name.endsWith('.lock') || name.includes(unfinished)) await rm(join(git.dir, name), { force: true });
  }
  for (const name of await readdir(join(git.dir, 'refs'), { recursive: true }).catch(() => [])) {
    if (name.endsWith('.lock')) await rm(join(git.dir, 'refs', name), { force: true });
  }
}

/** The names of packs, without an ending. */
export async function packsIn(git: Git): Promise<string[]> {
  const names = await namesIn(join(git.dir, 'objects', 'pack'));
  return names.filter((name) => name.endsWith('.pack')).map((name) => name.slice(0, -'.pack'.length));
}

export async function removePacks(git: Git, names: readonly string[]): Promise<void> {
  const packs = join(git.dir, 'objects', 'pack');
  for (const file of await namesIn(packs)) {
    // The file of a pack goes with all that is beside it.
    if (names.some((name) => file.startsWith(`${name}.`))) await rm(join(packs, file), { force: true });
  }
}

export async function removeLooseObjects(git: Git): Promise<void> {
  for (const folder of await looseFolders(git)) await rm(folder, { recursive: true, force: true });
}

/**
 * Whether a fetch has brought what git does not check. It may start others, for single objects of a partial clone, and
 * a server can answer each of them in another way.
 */
export async function hasUnchecked(
  git: Git,
  { before, isFiltered }: { before: readonly string[]; isFiltered: boolean },
): Promise<boolean> {
  if ((await looseFolders(git)).length > 0) return true;
  // Only of a fetch with a filter git marks the packs that it has checked.
  if (!isFiltered) return false;
  const packs = join(git.dir, 'objects', 'pack');
  const names = await namesIn(packs);
  const isPartial = names.some((name) => name.endsWith('.promisor'));
  const added = names.filter((name) => name.endsWith('.pack') && !before.includes(name.slice(0, -'.pack'.length)));
  return isPartial && added.some((name) => !names.includes(name.replace(/pack$/, 'promisor')));
}

/** The pack that has all there is; undefined where that is elsewhere too. */
export async function onlyPack(git: Git): Promise<string | undefined> {
  if ((await looseFolders(git)).length > 0) return undefined;
  if ((await namesIn(join(git.dir, 'objects', 'info'))).includes('alternates')) return undefined;
  const [name, ...others] = await packsIn(git);
  return others.length === 0 ? name : undefined;
}

async function looseFolders({ dir }: Git): Promise<string[]> {
  const objects = join(dir, 'objects');
  return (await namesIn(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name)).map((name) => join(objects, name));
}

export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** Where all refs are now. */
export async function readManifest(git: Git, filter: GitFilter | null): Promise<RefManifest> {
  const { output } = await git.do(['for-each-ref', '--format=%(objectname) %(refname)']);
  const refs: Record<string, string> = {};
  for (const line of linesOf(output)) {
    const [id = '', name = ''] = String(line).split(' ');
    // A server may offer other refs than those that it listed. Of bytes that are not text, a row would name another one.
    if (isUtf8(line) && isStorableRef(name)) refs[name] = id;
  }
  const head = (await readFile(join(git.dir, 'HEAD'), 'utf8')).trim();
  return { head: head.replace(/^ref: /, ''), refs, shallow: await readShallow(git), filter };
}

export async function readShallow(git: Git): Promise<string[]> {
  const text = await readFile(join(git.dir, 'shallow'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** Puts all refs where the manifest says. Its objects are there already. */
export async function writeManifest(git: Git, manifest: RefManifest): Promise<void> {
  await writeShallow(git, manifest.shallow);
  const names = Object.keys(manifest.refs).toSorted();
  if (!names.every(isStorableRef)) throw gitError('GIT_FAILED', 'The repository has a ref that cannot be stored.');
  const lines = names.map((name) => `${manifest.refs[name]} ${name}\n`);
  // One file for all of them. Git reads loose refs first, so these go.
  for (const folder of await namesIn(join(git.dir, 'refs'))) {
    await rm(join(git.dir, 'refs', folder), { recursive: true, force: true });
  }
  await writeDurably(join(git.dir, 'packed-refs'), lines.join(''));
  await writeHead(git, manifest.head);
}

/** The full name of a branch, or a commit. */
export function writeHead(git: Git, head: string): Promise<void> {
  return writeDurably(join(git.dir, 'HEAD'), head.startsWith('refs/') ? `ref: ${head}\n` : `${head}\n`);
}

export async function writeShallow(git: Git, shallow: readonly string[]): Promise<void> {
  const file = join(git.dir, 'shallow');
  if (shallow.length === 0) await rm(file, { force: true });
  else await writeDurably(file, `${shallow.join('\n')}\n`);
}

/** The ids that refs have, each once. */
export function idsOf(manifest: RefManifest | undefined): string[] {
  if (manifest === undefined) return [];
  const head = manifest.head.startsWith('refs/') ? [] : [manifest.head];
  return [...new Set([...Object.values(manifest.refs), ...head])];
}

/** The branch that HEAD names and that exists. */
export function currentBranch({ head, refs }: RefManifest): string | null {
  return head.startsWith('refs/heads/') && refs[head] !== undefined ? head.slice('refs/heads/'.length) : null;
}

/** How many refs are elsewhere than they were. */
export function countMoved(before: RefManifest | undefined, { refs }: RefManifest): number {
  const names = new Set([...Object.keys(before?.refs ?? {}), ...Object.keys(refs)]);
  return [...names].filter((name) => before?.refs[name] !== refs[name]).length;
}

/**
 * Throws 422 `GIT_TOO_LARGE` where moves would make more branches and tags of what there is than may be, with those that
 * are kept of drafts.
 */
export function requireFewRefs({ refs }: RefManifest, moves: readonly RefUpdate[], maxRefs: number): void {
  const isCounted = (name: string) => /^refs\/(?:heads|tags|atrium)\//.test(name);
  const names = new Set(Object.keys(refs).filter(isCounted));
  const before = names.size;
  for (const { name, to } of moves) {
    if (to === null) names.delete(name);
    else if (isCounted(name)) names.add(name);
  }
  // Where there are too many already, fewer are better.
  if (names.size > Math.max(maxRefs, before)) throw tooManyRefs(maxRefs);
}

export function isSameManifest(a: RefManifest, b: RefManifest): boolean {
  const [names, others] = [Object.keys(a.refs), Object.keys(b.refs)];
  return (
    a.head === b.head &&
    a.filter === b.filter &&
    names.length === others.length &&
    names.every((name) => a.refs[name] === b.refs[name]) &&
    a.shallow.toSorted().join() === b.shallow.toSorted().join()
  );
}
