import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder, tryLockFolder } from '../../../integrations/git/process/lock.ts';
import type { GitMirrors, MirrorSweep, RepositoryRef } from '../../../integrations/git/types.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { commitFiles, writeHistory } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';
import { processesWith } from '../../support/processes.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('git');

/** Mirrors on a full disk, and the removal of unused mirrors. */
let world: MirrorsWorld;
beforeEach(async () => {
  world = await buildMirrors();
});
afterEach(() => world[Symbol.asyncDispose]());

const plenty = Number.MAX_SAFE_INTEGER;
const day = 86_400_000;
const mirrorOf = (ref: RepositoryRef) => join(world.folderOf(ref), 'mirror.git');
const partialOf = (ref: RepositoryRef) => join(world.folderOf(ref), 'partial.git');
const has = (refs: RepositoryRef[]) => refs.map((ref) => existsSync(mirrorOf(ref)));

/** Sets the last use to this number of days ago. */
function lastUsed(ref: RepositoryRef, days: number): void {
  const at = new Date(Date.now() - days * day);
  utimesSync(`${world.folderOf(ref)}.lock`, at, at);
}

async function cloned(mirrors: GitMirrors = world.mirrors): Promise<RepositoryRef> {
  const ref = world.ref();
  const name = `${ref.itemId}.git`;
  commitFiles(world.server.create(name), { a: 'a' });
  await mirrors.clone(ref, { url: world.server.url(name) }, world.hooks());
  return ref;
}

/** Mirrors on a disk with this free space. */
const withFree = (bytes: () => number, settings = {}) =>
  world.another(settings, {}, { freeSpace: () => ({ bytes: bytes(), files: plenty }) });
/** Mirrors on a disk with room for this number of mirrors. */
const withRoomFor = (most: number) => withFree(() => (mirrorsHere() <= most ? plenty : 0));
const mirrorsHere = () =>
  readdirSync(world.dir).filter((name) => existsSync(join(world.dir, name, 'mirror.git'))).length;

function sweep(mirrors: GitMirrors, more: Partial<MirrorSweep> = {}): Promise<number> {
  return mirrors.sweep({
    known: async (ids) => new Set(ids),
    onFailure: (_itemId, error) => {
      throw error;
    },
    signal: new AbortController().signal,
    ...more,
  });
}

test('a clone does not begin without enough free space', async () => {
  const mirrors = withFree(() => 1_000_000);
  await expect(cloned(mirrors)).rejects.toMatchObject({ code: 'GIT_DISK_FULL', kind: 'unavailable' });
  expect(world.server.requests).toEqual([]);
  // The operator can lower the required free space.
  const frugal = withFree(() => 1_000_000, { ATRIUM_GIT_MIN_FREE_MIB: '0' });
  expect(has([await cloned(frugal)])).toEqual([true]);
});

test('a disk without free inodes counts as full', async () => {
  const kept = await cloned();
  const withFiles = (files: number, settings = {}) =>
    world.another(settings, {}, { freeSpace: () => ({ bytes: plenty, files }) });
  await expect(cloned(withFiles(1_000))).rejects.toMatchObject({ code: 'GIT_DISK_FULL' });
  expect(has([kept])).toEqual([false]);
  expect(has([await cloned(withFiles(1_000, { ATRIUM_GIT_MIN_FREE_MIB: '10' }))])).toEqual([true]);
});

test('a running clone is stopped when the disk is full, and its partial data are removed', async () => {
  writeHistory(world.server.create('large.git'), { commits: 50, filesEach: 2, weight: 32_000 });
  world.server.holdAfter = 800_000;
  const ref = world.ref();
  const mirrors = withFree(() => (world.server.isHolding ? 0 : plenty), { ATRIUM_GIT_SILENCE_SECONDS: '3600' });
  const cloning = mirrors.clone(ref, { url: world.server.url('large.git') }, world.hooks());
  await expect(cloning).rejects.toMatchObject({ code: 'GIT_DISK_FULL' });
  expect(existsSync(partialOf(ref))).toBe(false);
  expect(processesWith(world.folderOf(ref))).toEqual([]);
});

full.test(
  'the mirrors that were not used for longest are removed first, unless locked, and can be restored',
  async () => {
    const [oldest, busy, newer, newest] = [await cloned(), await cloned(), await cloned(), await cloned()];
    for (const [index, ref] of [oldest, busy, newer, newest].entries()) lastUsed(ref, 4 - index);
    await using _lock = await lockFolder(`${world.folderOf(busy)}.lock`, new AbortController().signal);
    lastUsed(busy, 9);
    const signal = new AbortController().signal;
    const mirrors = withRoomFor(3);
    await mirrors.bundleFor(newest, [], signal).then(async ({ bundle }) => bundle?.[Symbol.asyncDispose]());
    expect(has([oldest, busy, newer, newest])).toEqual([false, true, true, true]);
    await expect(sweep(withRoomFor(2))).resolves.toBe(0);
    expect(has([oldest, busy, newer, newest])).toEqual([false, true, false, true]);

    const again = await world.mirrors.bundleFor(oldest, [], signal);
    await again.bundle?.[Symbol.asyncDispose]();
    expect([again.version, ...has([oldest])]).toEqual([1, true]);
  },
);

test('a partial clone is removed once it is saved, or after a week without an attempt', async () => {
  const saved = await cloned();
  mkdirSync(partialOf(saved));
  const [fresh, old] = [world.ref(), world.ref()];
  writeHistory(world.server.create('cut.git'), { commits: 50, filesEach: 2, weight: 32_000 });
  world.server.cutAfter = 800_000;
  for (const ref of [fresh, old]) {
    const cut = world.mirrors.clone(ref, { url: world.server.url('cut.git') }, world.hooks());
    await expect(cut).rejects.toMatchObject({ code: 'GIT_REMOTE_FAILED' });
  }
  lastUsed(fresh, 6);
  lastUsed(old, 8);
  await sweep(world.mirrors);
  expect([saved, fresh, old].map((ref) => existsSync(partialOf(ref)))).toEqual([false, true, false]);
  expect(has([saved])).toEqual([true]);
});

test('a folder that cannot be cleaned up is reported, and the others are cleaned up', async () => {
  const [broken, gone] = [world.ref(), world.ref()];
  mkdirSync(partialOf(broken), { recursive: true });
  mkdirSync(`${world.folderOf(broken)}.lock`);
  mkdirSync(mirrorOf(gone), { recursive: true });
  const failed: string[] = [];
  const removed = await sweep(world.mirrors, {
    known: async () => new Set([broken.itemId]),
    onFailure: (itemId) => void failed.push(itemId),
  });
  expect([removed, failed, existsSync(world.folderOf(gone))]).toEqual([1, [broken.itemId], false]);
});

test('a process that waits for a removed lock file gets the lock on a new file', async () => {
  const gone = await cloned();
  const file = `${world.folderOf(gone)}.lock`;
  const { signal } = new AbortController();
  const first = await lockFolder(file, signal);
  const second = lockFolder(file, signal);
  const { ino } = statSync(file);
  const waiting = new RegExp(`-> FLOCK .*:${ino} `);
  await waitFor('the second to wait for the lock', () => waiting.test(readFileSync('/proc/locks', 'utf8')));

  rmSync(file);
  await first[Symbol.asyncDispose]();
  await using _second = await second;
  // The second lock is on the file that exists, so a third attempt fails.
  expect(await tryLockFolder(file, signal)).toBeUndefined();
});

test('a removed repository leaves nothing', async () => {
  const [gone, before] = [await cloned(), await cloned()];
  await world.mirrors.remove(gone, new AbortController().signal);
  rmSync(world.folderOf(before), { recursive: true });
  expect(await sweep(world.mirrors, { known: async () => new Set() })).toBe(1);
  expect(readdirSync(world.dir)).toEqual([]);
});
