import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { GitMirrors, RepositoryRef } from '../../../integrations/git/types.ts';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { createMirrorRecords } from '../../../models/git/mirrorRecords.ts';
import { buildMirrors, type MirrorsWorld } from '../../builders/mirrors.ts';
import { buildRepositoryRow } from '../../builders/repositoryRow.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { commitFiles } from '../../support/gitRepository.ts';

/** When the fifth bundle is there, the next save makes one of everything, if there is room for it. */
let world: MirrorsWorld;
let environment: TestEnvironment;
let store: ObjectStore;
beforeAll(async () => {
  [world, environment] = [await buildMirrors(), await createTestEnvironment()];
  store = new ObjectStore(environment.config.storage);
});
afterAll(async () => {
  store.close();
  await environment.close();
  await world[Symbol.asyncDispose]();
});

const { signal } = new AbortController();

/** Mirrors of repositories whose rows are in the database, in a space of which so much may be used; 0 is no limit. */
function mirrorsWith(quotaBytes: number): { mirrors: GitMirrors; chainOf(ref: RepositoryRef): Promise<number[]> } {
  const records = createMirrorRecords({ database: environment.database, store, quotaBytes });
  return {
    mirrors: world.another({}, {}, { records }),
    chainOf: async (ref) => (await records.current(ref))?.bundles.map(({ version }) => version) ?? [],
  };
}

/** A remote, and what changes it by so many bytes and brings that into the mirror. Returns the new commit. */
function remote(name: string, bytes: number) {
  const bare = world.server.create(name);
  const commit = () => commitFiles(bare, { [randomBytes(6).toString('hex')]: randomBytes(bytes) });
  commit();
  const source = { url: world.server.url(name) };
  return {
    clone: (mirrors: GitMirrors, ref: RepositoryRef) => mirrors.clone(ref, source, world.hooks()),
    async change(mirrors: GitMirrors, ref: RepositoryRef, { times = 1 } = {}): Promise<string> {
      let tip = '';
      for (let count = 0; count < times; count += 1) {
        tip = commit();
        await mirrors.fetch(ref, source, world.hooks());
      }
      return tip;
    },
  };
}

const usedBy = ({ spaceId }: RepositoryRef) => driveModels(environment.database).Drive.usedBytesOf(spaceId);
const objectsOf = async ({ spaceId }: RepositoryRef) => {
  const found = await driveModels(environment.database).DriveObject.findAll({ where: { spaceId } });
  return found.map(({ state }) => state).toSorted();
};

test('a repository goes on being saved where its space has no room for a second copy of it', async () => {
  const { clone, change } = remote('large.git', 100_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(1_100_000);
  await clone(mirrors, ref);
  const tip = await change(mirrors, ref, { times: 9 });
  expect(await chainOf(ref)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(await objectsOf(ref)).toEqual(Array(10).fill('kept'));
  world.loseMachine();
  await mirrors.measure(ref, tip, signal);

  // With more room, after as many bundles again.
  const roomy = mirrorsWith(0);
  await change(roomy.mirrors, ref);
  expect(await roomy.chainOf(ref)).toEqual([11]);
  expect((await objectsOf(ref)).filter((state) => state !== 'doomed')).toEqual(['kept']);
  world.loseMachine();
  await roomy.mirrors.measure(ref, tip, signal);
});

test('one for which there is no room at all is not packed anew for that', async () => {
  const { clone, change } = remote('full.git', 1_000);
  const ref = await buildRepositoryRow(environment);
  const { mirrors, chainOf } = mirrorsWith(0);
  await clone(mirrors, ref);
  await change(mirrors, ref, { times: 4 });
  const full = mirrorsWith(await usedBy(ref));
  await expect(change(full.mirrors, ref)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  const packs = readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects', 'pack'));
  expect(packs.filter((name) => name.endsWith('.pack')).length).toBeGreaterThan(4);
  await change(mirrors, ref);
  expect(await chainOf(ref)).toEqual([6]);
});

test('so does one of which everything would be a larger file than git may write', async () => {
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
