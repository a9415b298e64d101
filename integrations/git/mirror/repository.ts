import { isUtf8 } from 'node:buffer';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unfinished, writeDurably } from '../../../disk/durable.ts';
import type { Git } from '../process/git.ts';
import { gitError, tooManyRefs } from '../rules/failures.ts';
import { isStorableRef } from '../rules/names.ts';
import { linesOf } from '../rules/remoteRefs.ts';
import type { GitFilter, RefManifest, RefUpdate } from '../types.ts';

/** Makes an empty bare repository, replacing any that is there. */
export async function initRepository(git: Git, filter: GitFilter | null): Promise<void> {
  await rm(git.dir, { recursive: true, force: true });
  await mkdir(git.dir, { recursive: true, mode: 0o700 });
  await git.do(['init', '--quiet', '--bare']);
  await configure(git, filter);
}

/**
 * Writes the repository's own settings. With a filter, objects may be missing: git then expects them at the remote.
 * Only calls that may go there are given its URL.
 */
export async function configure(git: Git, filter: GitFilter | 'tree:0' | null): Promise<void> {
  const lines = ['[core]', `\trepositoryformatversion = ${filter === null ? 0 : 1}`, '\tbare = true'];
  if (filter !== null) {
    lines.push('[extensions]', '\tpartialClone = origin', '[remote "origin"]', '\tpromisor = true');
    lines.push(`\tpartialclonefilter = ${filter}`);
  }
  await writeDurably(join(git.dir, 'config'), `${lines.join('\n')}\n`);
}

/** Removes the leftovers of killed processes: locks, and temporary packs. */
export async function removeLeftovers(git: Git, { keepTemporaryPacks = false } = {}): Promise<void> {
  const packs = packFolder(git);
  for (const name of await namesIn(packs)) {
    const isTemporary = name.startsWith('tmp_') || name.startsWith('.tmp-');
    const isLeft = isTemporary && !(keepTemporaryPacks && name.startsWith('tmp_pack_'));
    // Git never repacks a pack with a .keep file, and the process that wrote the file is dead.
    if (isLeft || name.endsWith('.keep')) await rm(join(packs, name), { force: true });
  }
  for (const name of await namesIn(git.dir)) {
    if (name.endsWith('.lock') || name.includes(unfinished)) await rm(join(git.dir, name), { force: true });
  }
  for (const name of await readdir(join(git.dir, 'refs'), { recursive: true }).catch(() => [])) {
    if (name.endsWith('.lock')) await rm(join(git.dir, 'refs', name), { force: true });
  }
}

export function packFolder({ dir }: Git): string {
  return join(dir, 'objects', 'pack');
}

/** The names of all packs, without an extension. */
export async function packsIn(git: Git): Promise<string[]> {
  const names = await namesIn(packFolder(git));
  return names.filter((name) => name.endsWith('.pack')).map((name) => name.slice(0, -'.pack'.length));
}

/** Removes packs with their indexes and other companion files. */
export async function removePacks(git: Git, names: readonly string[]): Promise<void> {
  for (const file of await namesIn(packFolder(git))) {
    if (names.some((name) => file.startsWith(`${name}.`))) await rm(join(packFolder(git), file), { force: true });
  }
}

/** Removes all packs but these. */
export async function removePacksBut(git: Git, kept: readonly string[]): Promise<void> {
  const others = (await packsIn(git)).filter((name) => !kept.includes(name));
  await removePacks(git, others);
}

export async function removeLooseObjects(git: Git): Promise<void> {
  for (const folder of await looseFolders(git)) await rm(folder, { recursive: true, force: true });
}

/**
 * Whether a fetch brought objects that git did not check. For single objects of a partial clone, git may start further
 * fetches, and a server can answer each of them differently.
 */
export async function hasUnchecked(
  git: Git,
  { before, isFiltered }: { before: readonly string[]; isFiltered: boolean },
): Promise<boolean> {
  if ((await looseFolders(git)).length > 0) return true;
  // Git marks the packs that it has checked only in a fetch with a filter.
  if (!isFiltered) return false;
  const names = await namesIn(packFolder(git));
  const isPartial = names.some((name) => name.endsWith('.promisor'));
  const added = (await packsIn(git)).filter((name) => !before.includes(name));
  return isPartial && added.some((name) => !names.includes(`${name}.promisor`));
}

/** The pack that has all objects; undefined if objects are elsewhere too. */
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

/** The names in a folder; none if the folder is missing. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** The current state of all refs. */
export async function readManifest(git: Git, filter: GitFilter | null): Promise<RefManifest> {
  const { output } = await git.do(['for-each-ref', '--format=%(objectname) %(refname)']);
  const refs: Record<string, string> = {};
  for (const line of linesOf(output)) {
    const [id = '', name = ''] = String(line).split(' ');
    // A server may send refs that it did not list. A name that is not UTF-8 would become another name in a row.
    if (isUtf8(line) && isStorableRef(name)) refs[name] = id;
  }
  const head = (await readFile(join(git.dir, 'HEAD'), 'utf8')).trim();
  return { head: head.replace(/^ref: /, ''), refs, shallow: await readShallow(git), filter };
}

export async function readShallow(git: Git): Promise<string[]> {
  const text = await readFile(join(git.dir, 'shallow'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** Moves all refs to where the manifest says. Their objects must be there already. */
export async function writeManifest(git: Git, manifest: RefManifest): Promise<void> {
  await writeShallow(git, manifest.shallow);
  const names = Object.keys(manifest.refs).toSorted();
  if (!names.every(isStorableRef)) throw gitError('GIT_FAILED', 'The repository has a ref that cannot be stored.');
  const lines = names.map((name) => `${manifest.refs[name]} ${name}\n`);
  // One file holds all refs. Git reads loose refs first, so these must go.
  for (const folder of await namesIn(join(git.dir, 'refs'))) {
    await rm(join(git.dir, 'refs', folder), { recursive: true, force: true });
  }
  await writeDurably(join(git.dir, 'packed-refs'), lines.join(''));
  await writeHead(git, manifest.head);
}

/** Points HEAD at a branch, by its full name, or at a commit. */
export function writeHead(git: Git, head: string): Promise<void> {
  return writeDurably(join(git.dir, 'HEAD'), head.startsWith('refs/') ? `ref: ${head}\n` : `${head}\n`);
}

export async function writeShallow(git: Git, shallow: readonly string[]): Promise<void> {
  const file = join(git.dir, 'shallow');
  if (shallow.length === 0) await rm(file, { force: true });
  else await writeDurably(file, `${shallow.join('\n')}\n`);
}

/** The ids that refs and HEAD name, each once. */
export function idsOf(manifest: RefManifest | undefined): string[] {
  if (manifest === undefined) return [];
  const head = manifest.head.startsWith('refs/') ? [] : [manifest.head];
  return [...new Set([...Object.values(manifest.refs), ...head])];
}

/** The branch that HEAD names, if it exists. */
export function currentBranch({ head, refs }: RefManifest): string | null {
  return head.startsWith('refs/heads/') && refs[head] !== undefined ? head.slice('refs/heads/'.length) : null;
}

/** Counts the refs that differ between two states. */
export function countMoved(before: RefManifest | undefined, { refs }: RefManifest): number {
  const names = new Set([...Object.keys(before?.refs ?? {}), ...Object.keys(refs)]);
  return [...names].filter((name) => before?.refs[name] !== refs[name]).length;
}

/** Throws 422 `GIT_TOO_LARGE` if moves would make too many branches, tags and refs of drafts. */
export function requireFewRefs({ refs }: RefManifest, moves: readonly RefUpdate[], maxRefs: number): void {
  const isCounted = (name: string) => /^refs\/(?:heads|tags|atrium)\//.test(name);
  const names = new Set(Object.keys(refs).filter(isCounted));
  const before = names.size;
  for (const { name, to } of moves) {
    if (to === null) names.delete(name);
    else if (isCounted(name)) names.add(name);
  }
  // A repository with too many refs may still remove some.
  if (names.size > Math.max(maxRefs, before)) throw tooManyRefs(maxRefs);
}

export function isSameManifest(a: RefManifest, b: RefManifest): boolean {
  return (
    a.head === b.head &&
    a.filter === b.filter &&
    countMoved(a, b) === 0 &&
    a.shallow.toSorted().join() === b.shallow.toSorted().join()
  );
}
