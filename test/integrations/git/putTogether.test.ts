import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RepositoryRef } from '../../../integrations/git/types.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { buildSavedMirrors, type SavedMirrorsWorld } from '../../builders/savedMirrors.ts';
import { commitFiles, gitIn } from '../../support/gitRepository.ts';
import { pidsWith, processesWith } from '../../support/processes.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Saves while merging the bundles into one fails. The merge is due at the fifth bundle. */
let saved: SavedMirrorsWorld;
beforeAll(async () => {
  saved = await buildSavedMirrors();
});
afterAll(() => saved[Symbol.asyncDispose]());

const { signal } = new AbortController();
const plenty = Number.MAX_SAFE_INTEGER;
const mirrorOf = (ref: RepositoryRef) => join(saved.world.folderOf(ref), 'mirror.git');
const packs = (count: number) => Array(count).fill(expect.stringMatching(/^pack-[0-9a-f]{40}\.pack$/));
const kept = (count: number) => Array(count).fill('kept');

/** The packs of a mirror, and other files that git left beside them. */
function packsOf(ref: RepositoryRef): string[] {
  return saved.packFilesOf(ref).filter((name) => !/\.(?:idx|rev)$/.test(name));
}

/** The ids of git's processes that merge everything into one pack. */
const packing = (ref: RepositoryRef) => pidsWith('pack-objects', join(mirrorOf(ref), 'objects', 'pack', 'pack'));

const manyFiles = () =>
  Object.fromEntries(Array.from({ length: 800 }, () => [randomBytes(6).toString('hex'), randomBytes(4_000)]));

/** Damages the pack, so that git cannot read the first commit's file. */
function damage(ref: RepositoryRef): void {
  const files = packsOf(ref).map((name) => join(mirrorOf(ref), 'objects', 'pack', name));
  expect(files).toHaveLength(1);
  const [file = ''] = files;
  const pack = readFileSync(file);
  const middle = Math.floor(pack.length / 2);
  pack.fill(0, middle, middle + 1_000);
  chmodSync(file, 0o600);
  writeFileSync(file, pack);
}

describe('a change is saved, and the bundles are merged later, if', () => {
  interface Case {
    ref: RepositoryRef;
    disk: { isFull: boolean };
    caller: AbortController;
  }
  test.each<[string, (on: Case) => void]>([
    [
      'git is killed',
      ({ ref }) => {
        for (const pid of packing(ref)) process.kill(pid, 'SIGKILL');
      },
    ],
    ['the disk is full', ({ disk }) => Object.assign(disk, { isFull: true })],
    ['whoever has asked for the change calls it off', ({ caller }) => caller.abort()],
  ])('%s', async (what, happen) => {
    const { environment, mirrorsWith, objectsOf, remote, world } = saved;
    const { bare, change, clone, commit, fetch } = remote(`${what.replaceAll(' ', '-')}.git`, 1_000);
    const ref = await buildRepositoryRow(environment);
    const disk = { isFull: false };
    const { mirrors, chainOf } = mirrorsWith(0, {
      freeSpace: () => ({ bytes: disk.isFull ? 0 : plenty, files: plenty }),
    });
    // Makes git slow: it compares each file with all files of another pack.
    commitFiles(bare, manyFiles());
    await clone(mirrors, ref);
    gitIn(mirrorOf(ref), '--git-dir=.', 'config', 'pack.window', '100000');
    commitFiles(bare, manyFiles());
    await change(mirrors, ref, { times: 3 });

    const caller = new AbortController();
    const tip = commit();
    const changing = fetch(mirrors, ref, { signal: caller.signal });
    await waitFor('git to merge the packs', () => packing(ref).length > 0);
    happen({ ref, disk, caller });
    await expect(changing).resolves.toMatchObject({
      version: 5,
      manifest: { refs: { 'refs/remotes/origin/main': tip } },
    });
    expect(await chainOf(ref)).toEqual([1, 2, 3, 4, 5]);
    expect([await objectsOf(ref), packsOf(ref)]).toEqual([kept(5), packs(5)]);
    expect(processesWith(world.folderOf(ref))).toEqual([]);
    disk.isFull = false;

    gitIn(mirrorOf(ref), '--git-dir=.', 'config', '--unset', 'pack.window');
    await change(mirrors, ref);
    expect(await chainOf(ref)).toEqual([1, 2, 3, 4, 5, 6]);
    saved.anHourLater(ref);
    const last = await change(mirrors, ref);
    expect(await chainOf(ref)).toEqual([8]);
    expect([await objectsOf(ref), packsOf(ref)]).toEqual([kept(1), packs(1)]);
    expect(existsSync(join(world.folderOf(ref), 'together.json'))).toBe(false);
    world.loseMachine();
    await mirrors.measure(ref, last, signal);
  });
});

test('a change of a damaged mirror is saved too, and the mirror is restored', async () => {
  const { environment, mirrorsWith, objectsOf, remote, world } = saved;
  const { change, clone } = remote('damaged.git', 100_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(0);
  await clone(mirrors, ref);
  damage(ref);
  await change(mirrors, ref, { times: 4 });
  expect(await chainOf(ref)).toEqual([1, 2, 3, 4, 5]);
  saved.anHourLater(ref);
  const tip = await change(mirrors, ref);
  expect([await chainOf(ref), await objectsOf(ref), packsOf(ref)]).toEqual([[7], kept(1), packs(1)]);
  world.loseMachine();
  await mirrors.measure(ref, tip, signal);
});

test('a removed branch is gone at once, and its objects later', async () => {
  const { environment, mirrorsWith, objectsOf, remote } = saved;
  const { bare, clone, commit, fetch } = remote('branch.git', 100_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(0);
  await clone(mirrors, ref);
  damage(ref);
  commit('try', 100_000);
  await fetch(mirrors, ref);
  gitIn(bare, 'branch', '-D', 'try');
  const { manifest } = await fetch(mirrors, ref);
  expect(Object.keys(manifest.refs)).not.toContain('refs/remotes/origin/try');
  expect(await chainOf(ref)).toEqual([1, 2]);
  saved.anHourLater(ref);
  // This also works at a fetch without changes.
  await fetch(mirrors, ref);
  expect([await chainOf(ref), await objectsOf(ref)]).toEqual([[4], kept(1)]);
});

test('a change fails with QUOTA_EXCEEDED if there is no room and git cannot make room', async () => {
  const { environment, mirrorsWith, objectsOf, remote } = saved;
  const { bare, change, clone, fetch } = remote('full.git', 300_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(700_000);
  await clone(mirrors, ref);
  damage(ref);
  await change(mirrors, ref);
  // Replace the remote's second commit by another one.
  gitIn(bare, 'update-ref', 'refs/heads/main', 'main~1');
  await expect(change(mirrors, ref)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  expect([await chainOf(ref), await objectsOf(ref)]).toEqual([[1, 2], kept(2)]);
  // The mirror has been restored.
  await fetch(mirrors, ref);
  expect([await chainOf(ref), await objectsOf(ref)]).toEqual([[3], kept(1)]);
});
