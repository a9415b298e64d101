import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MirrorRecords, RepositoryRef } from '../../../integrations/git/types.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { removeDoomed } from '../../../models/drive/removeObjects.ts';
import { createMirrorRecords } from '../../../models/git/mirrorRecords.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { buildSavedMirrors, type SavedMirrorsWorld } from '../../builders/savedMirrors.ts';
import { gitIn } from '../../support/gitRepository.ts';
import { inFull } from '../../support/inFull.ts';

const full = inFull('git');

/** Bundles are merged into one when the fifth is saved, or earlier if that frees room. */
let saved: SavedMirrorsWorld;
beforeAll(async () => {
  saved = await buildSavedMirrors();
});
afterAll(() => saved[Symbol.asyncDispose]());

const { signal } = new AbortController();
const packsOf = (ref: RepositoryRef) => saved.packFilesOf(ref).filter((name) => name.endsWith('.pack'));

full.test('a chain of bundles is merged although the space has no room for a second copy', async () => {
  const { environment, mirrorsWith, objectsOf, remote, usedBy, world } = saved;
  const { clone, change } = remote('large.git', 100_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(1_100_000);
  await clone(mirrors, ref);
  const tip = await change(mirrors, ref, { times: 9 });
  expect(await chainOf(ref)).toEqual([11, 12]);
  // The replaced bundles no longer count.
  expect(await objectsOf(ref)).toEqual(Array(2).fill('kept'));
  expect(await usedBy(ref)).toBeLessThan(1_100_000);
  world.loseMachine();
  await mirrors.measure(ref, tip, signal);
});

full.test('a full space accepts a change that makes old objects unnecessary', async () => {
  const { environment, mirrorsWith, remote, usedBy, world } = saved;
  const { bare, clone, fetch, change } = remote('rewritten.git', 300_000);
  const ref = await buildRepositoryRow(environment);
  const full = mirrorsWith(700_000);
  await clone(full.mirrors, ref);
  await change(full.mirrors, ref);
  const lost = gitIn(bare, 'rev-parse', 'main');
  await expect(change(full.mirrors, ref)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  expect(await full.chainOf(ref)).toEqual([1, 2]);
  const found = () => readFileSync(join(world.folderOf(ref), 'whole.json'), 'utf8');
  const first = found();
  await expect(fetch(full.mirrors, ref)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  // The bundles were not merged again for the same result.
  expect(found()).toBe(first);
  expect(packsOf(ref)).toHaveLength(3);

  // Replace the remote's second commit by another one.
  gitIn(bare, 'update-ref', 'refs/heads/main', gitIn(bare, 'rev-parse', 'main~2'));
  const tip = await change(full.mirrors, ref);
  expect(await full.chainOf(ref)).toEqual([3]);
  expect(await usedBy(ref)).toBeLessThan(700_000);
  expect(packsOf(ref)).toHaveLength(1);
  world.loseMachine();
  await full.mirrors.measure(ref, tip, signal);
  await expect(full.mirrors.measure(ref, lost, signal)).rejects.toMatchObject({ code: 'GIT_REF_UNKNOWN' });
});

test('a deleted branch frees its room, and a full space accepts new work again', async () => {
  const { environment, mirrorsWith, remote, usedBy, world } = saved;
  const { bare, clone, fetch, change, commit } = remote('discarded.git', 100_000);
  const ref = await buildRepositoryRow(environment);
  const full = mirrorsWith(600_000);
  await clone(full.mirrors, ref);
  gitIn(bare, 'branch', 'try');
  commit('try', 400_000);
  await fetch(full.mirrors, ref);
  await expect(change(full.mirrors, ref)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  gitIn(bare, 'branch', '-D', 'try');
  gitIn(bare, 'update-ref', 'refs/heads/main', 'main~1');
  await fetch(full.mirrors, ref);
  expect(await full.chainOf(ref)).toEqual([4]);
  expect(await usedBy(ref)).toBeLessThan(110_000);
  const tip = await change(full.mirrors, ref, { times: 3 });
  world.loseMachine();
  await full.mirrors.measure(ref, tip, signal);
});

test('a small gain in a large repository does not cause a merge while there is much room', async () => {
  const { environment, mirrorsWith, remote } = saved;
  const { bare, clone, fetch, commit } = remote('roomy.git', 300_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(100_000_000);
  await clone(mirrors, ref);
  gitIn(bare, 'branch', 'try');
  commit('try', 10_000);
  await fetch(mirrors, ref);
  gitIn(bare, 'branch', '-D', 'try');
  await fetch(mirrors, ref);
  expect(await chainOf(ref)).toEqual([1, 2]);
});

describe('a process that is killed', () => {
  const discarded = async (name: string) => {
    const { environment, mirrorsWith, remote } = saved;
    const { bare, clone, fetch, change, commit } = remote(name, 100_000);
    const ref = await buildRepositoryRow(environment);
    const { mirrors } = mirrorsWith(600_000);
    await clone(mirrors, ref);
    const tip = await change(mirrors, ref);
    gitIn(bare, 'branch', 'try');
    commit('try', 200_000);
    await fetch(mirrors, ref);
    gitIn(bare, 'branch', '-D', 'try');
    return { ref, tip, fetch };
  };
  /** Removes objects as the sweeper does, as if all leases had expired. */
  const sweep = async () => {
    const { environment, store } = saved;
    const { database } = environment;
    const { DriveObject } = driveModels(database);
    await DriveObject.doomExpired(new Date(Date.now() + 3_600_000));
    await removeDoomed({ database, store });
    await database.pool.query('UPDATE drive_objects SET lease_expires_at = ? WHERE lease_expires_at IS NOT NULL', [
      new Date(0),
    ]);
    await removeDoomed({ database, store });
  };

  test('after storing the merged bundle and before saving it loses and leaves nothing', async () => {
    const { environment, mirrorsWith, objectsOf, store, world } = saved;
    const { ref, tip, fetch } = await discarded('killed1.git');
    const usual = createMirrorRecords({ database: environment.database, store, quotaBytes: 600_000 });
    // A killed process does not renew or dispose of its plans.
    const plan: MirrorRecords['plan'] = async ({ spaceId }, { objectKey, bytes }) => {
      const { DriveObject } = driveModels(environment.database);
      await DriveObject.begin(environment.database, { objectKey, spaceId, bytes, quotaBytes: 0 });
      return { async [Symbol.asyncDispose]() {} };
    };
    const save: MirrorRecords['save'] = (of, next) =>
      next.replacesAll ? Promise.reject(new Error('killed')) : usual.save(of, next);
    await fetch(world.another({}, {}, { records: { ...usual, plan, save } }), ref);
    expect(await objectsOf(ref)).toEqual(['arriving', 'kept', 'kept', 'kept']);
    await sweep();
    const { mirrors, chainOf } = mirrorsWith(600_000);
    expect([await chainOf(ref), await objectsOf(ref)]).toEqual([
      [1, 2, 3],
      ['kept', 'kept', 'kept'],
    ]);
    saved.anHourLater(ref);
    await fetch(mirrors, ref);
    expect([await chainOf(ref), await objectsOf(ref)]).toEqual([[5], ['kept']]);
    world.loseMachine();
    await mirrors.measure(ref, tip, signal);
  });

  test('after saving the merged bundle and before removing the others loses and leaves nothing', async () => {
    const { mirrorsWith, objectsOf, usedBy, world } = saved;
    const { ref, tip, fetch } = await discarded('killed2.git');
    const { mirrors, chainOf } = mirrorsWith(600_000, { remove: () => Promise.reject(new Error('killed')) });
    await fetch(mirrors, ref);
    expect([await chainOf(ref), await objectsOf(ref)]).toEqual([[5], ['doomed', 'doomed', 'doomed', 'kept']]);
    await sweep();
    expect(await objectsOf(ref)).toEqual(['kept']);
    expect(await usedBy(ref)).toBeLessThan(210_000);
    world.loseMachine();
    await mirrors.measure(ref, tip, signal);
  });
});

test('a repository that is too large for one bundle keeps its bundles, and is restored from them', async () => {
  const { remote, world } = saved;
  const { clone, change } = remote('grown.git', 300_000);
  const mirrors = world.another({ ATRIUM_GIT_MAX_MIB: '1' });
  const ref = world.ref();
  await clone(mirrors, ref);
  const tip = await change(mirrors, ref, { times: 6 });
  expect((await world.records.current(ref))?.bundles).toHaveLength(7);
  const packs = readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects', 'pack'));
  expect(packs.filter((name) => name.includes('tmp'))).toEqual([]);
  world.loseMachine();
  await mirrors.measure(ref, tip, signal);
});
