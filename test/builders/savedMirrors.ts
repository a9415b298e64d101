import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GitMirrorsDeps } from '../../integrations/git/createGitMirrors.ts';
import type { GitHooks, GitMirrors, RepositoryRef } from '../../integrations/git/types.ts';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { driveModels } from '../../models/drive/models.ts';
import { createMirrorRecords } from '../../models/git/mirrorRecords.ts';
import { createTestEnvironment } from '../support/environment.ts';
import { commitFiles } from '../support/gitRepository.ts';
import { buildMirrors } from './mirrors.ts';

export type SavedMirrorsWorld = Awaited<ReturnType<typeof buildSavedMirrors>>;

/** Mirrors of repositories with rows in the database. */
export async function buildSavedMirrors() {
  const [world, environment] = [await buildMirrors(), await createTestEnvironment()];
  const store = new ObjectStore(environment.config.storage);
  const { database } = environment;

  return {
    world,
    environment,
    store,

    /** Mirrors for spaces with this quota. 0 means no limit. */
    mirrorsWith(
      quotaBytes: number,
      {
        remove = (...args) => store.remove(...args),
        freeSpace,
      }: { remove?: ObjectStore['remove']; freeSpace?: GitMirrorsDeps['freeSpace'] } = {},
    ): { mirrors: GitMirrors; chainOf(ref: RepositoryRef): Promise<number[]> } {
      const records = createMirrorRecords({ database, store: { remove }, quotaBytes });
      return {
        mirrors: world.another({}, {}, { records, ...(freeSpace && { freeSpace }) }),
        chainOf: async (ref) => (await records.current(ref))?.bundles.map(({ version }) => version) ?? [],
      };
    },

    /**
     * A remote repository. `change` commits this many bytes and fetches them into the mirror, and returns the new
     * commit.
     */
    remote(name: string, bytes: number) {
      const bare = world.server.create(name);
      const commit = (branch = 'main', size = bytes) =>
        commitFiles(bare, { [randomBytes(6).toString('hex')]: randomBytes(size) }, { branch });
      commit();
      const source = { url: world.server.url(name) };
      return {
        bare,
        commit,
        fetch: (mirrors: GitMirrors, ref: RepositoryRef, hooks: Partial<GitHooks> = {}) =>
          mirrors.fetch(ref, source, world.hooks(hooks)),
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
    },

    usedBy: ({ spaceId }: RepositoryRef) => driveModels(database).Drive.usedBytesOf(spaceId),

    /** The states of the space's objects in the store. */
    async objectsOf({ spaceId }: RepositoryRef): Promise<string[]> {
      const found = await driveModels(database).DriveObject.findAll({ where: { spaceId } });
      return found.map(({ state }) => state).toSorted();
    },

    /** The pack files of a mirror. */
    packFilesOf: (ref: RepositoryRef) => readdirSync(join(world.folderOf(ref), 'mirror.git', 'objects', 'pack')),

    /** Moves a failed attempt an hour into the past, so that it is tried again. */
    anHourLater(ref: RepositoryRef): void {
      const file = join(world.folderOf(ref), 'together.json');
      const attempt = JSON.parse(readFileSync(file, 'utf8')) as { at: number };
      writeFileSync(file, JSON.stringify({ ...attempt, at: attempt.at - 3_600_000 }));
    },

    async [Symbol.asyncDispose]() {
      store.close();
      await environment.close();
      await world[Symbol.asyncDispose]();
    },
  };
}
