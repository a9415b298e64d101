import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitConfig } from '../../../config/git.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import type { ObjectStore } from '../../storage/objectStore.ts';
import { noAuthorities } from '../process/environment.ts';
import { type FolderLock, lockFolder, tryLockFolder } from '../process/lock.ts';
import { isUnexplained, wasKilled } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import type { GitFilter, MirrorRecords, MirrorState, RepositoryRef, SavedMirror, StoredBundle } from '../types.ts';
import { FolderState } from './folderState.ts';
import { Git } from './git.ts';
import { initRepository, namesIn, packsIn, writeManifest } from './repository.ts';
import { savePacks, saveRepository } from './save.ts';
import type { Saving } from './store.ts';
import { isConnected, takeInOwn } from './takeIn.ts';
import { putTogether } from './together.ts';

/** Of a disk. */
export interface FreeSpace {
  bytes: number;
  /** How many files may be made. */
  files: number;
}

export interface FolderDeps {
  config: GitConfig;
  records: MirrorRecords;
  storage: Pick<ObjectStore, 'read' | 'write'>;
  logger?: Pick<Logger, 'warn'>;
  /** What is free where mirrors are; without it, as the system says. */
  freeSpace?: (folder: string) => FreeSpace | Promise<FreeSpace>;
  /** After so many bundles, one of everything takes their place if there is room for it: a restore reads them all. */
  maxChain?: number;
}

const bundleAgeMs = 86_400_000;

/**
 * What this machine has of one repository, locked: `mirror.git`, a cache of the bundles in the object store;
 * `partial.git`, a clone that is not finished; `bundles`, made for readers.
 */
export class MirrorFolder implements AsyncDisposable {
  readonly root: string;
  readonly git: Git;
  readonly partial: Git;
  readonly #state: FolderState;
  readonly #deps: FolderDeps;
  readonly #ref: RepositoryRef;
  readonly #unlock: AsyncDisposable;

  private constructor(deps: FolderDeps, ref: RepositoryRef, root: string, git: Git, unlock: AsyncDisposable) {
    this.#deps = deps;
    this.#ref = ref;
    this.root = root;
    this.git = git;
    this.partial = git.at(join(root, 'partial.git'));
    this.#state = new FolderState(root, git);
    this.#unlock = unlock;
  }

  static pathOf(config: GitConfig, { itemId }: RepositoryRef): string {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(itemId)) throw new Error('An item’s id is not a name of a folder.');
    return join(config.dir, itemId);
  }

  static async lock(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<MirrorFolder> {
    const lock = await lockFolder(`${MirrorFolder.pathOf(deps.config, ref)}.lock`, signal);
    try {
      const folder = MirrorFolder.#of(deps, ref, lock, signal);
      await mkdir(join(folder.git.home, noAuthorities), { recursive: true, mode: 0o700 });
      return folder;
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** To tidy it up, without git. Undefined while somebody works in it. */
  static async tryLock(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<MirrorFolder | undefined> {
    const lock = await tryLockFolder(`${MirrorFolder.pathOf(deps.config, ref)}.lock`, signal);
    return lock && MirrorFolder.#of(deps, ref, lock, signal);
  }

  static #of(deps: FolderDeps, ref: RepositoryRef, lock: FolderLock, signal: AbortSignal): MirrorFolder {
    const { config } = deps;
    const root = MirrorFolder.pathOf(config, ref);
    const [dir, home] = [join(root, 'mirror.git'), join(root, 'home')];
    return new MirrorFolder(deps, ref, root, new Git({ config, dir, home, lock: lock.descriptor, signal }), lock);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#unlock[Symbol.asyncDispose]();
  }

  get bundles(): string {
    return join(this.root, 'bundles');
  }

  /** Brings the mirror to what is saved, from the store where this machine lacks it. */
  async open(saved: SavedMirror): Promise<void> {
    const state = await this.#state.read();
    if (state?.version === saved.version && state.isClean) return;
    await this.removeOldBundles();
    const { git } = this;
    const isUsable = state !== undefined && state.version <= saved.version && (await this.#state.undo(state));
    if (!isUsable) await initRepository(git, saved.manifest.filter);
    await this.#state.begin(isUsable ? state.version : 0);
    const from = isUsable ? state.version : 0;
    for (const bundle of saved.bundles.filter(({ version }) => version > from)) {
      await this.#takeIn(bundle, saved.manifest);
    }
    await writeManifest(git, saved.manifest);
    if (!isUsable && !(await isConnected(git, saved.manifest.filter))) {
      throw gitError('GIT_FAILED', 'The repository cannot be restored: its bundles lack objects.');
    }
    await this.#state.settle(saved.version);
  }

  async #takeIn({ objectKey }: StoredBundle, manifest: SavedMirror['manifest']): Promise<void> {
    const { storage } = this.#deps;
    try {
      await takeInOwn(this.git, await storage.read(objectKey), manifest);
    } catch (error) {
      this.git.signal.throwIfAborted();
      // Git refuses a damaged bundle before it has read all of it. Read to its end, the store says what is wrong.
      for await (const _bytes of await storage.read(objectKey));
      throw error;
    }
  }

  /**
   * Runs what changes the mirror, and saves the change: the bundle first, then the row. One that fails or is killed in
   * between leaves refs and objects that the next one puts back or removes.
   */
  async change(saved: SavedMirror | undefined, work: (git: Git) => Promise<void>): Promise<MirrorState> {
    await this.#state.begin(saved?.version ?? 0);
    await work(this.git);
    const saving = this.#savingOf(this.git);
    const next = await saveRepository(saving, saved);
    await this.#state.settle(next.version);
    const { version, manifest } = await putTogether(saving, this.#state, next, saved);
    return { version, manifest };
  }

  /** Runs what brings objects that no ref moves to, and saves them: another machine may need them next. */
  async enrich(saved: SavedMirror, work: (git: Git) => Promise<void>): Promise<void> {
    const before = await packsIn(this.git);
    await this.#state.begin(saved.version);
    await work(this.git);
    const added = (await packsIn(this.git)).filter((name) => !before.includes(name));
    const { version } = await savePacks(this.#savingOf(this.git), saved, added);
    await this.#state.settle(version);
  }

  /** Makes what has been cloned the mirror. */
  async adopt(state: MirrorState): Promise<void> {
    await this.#state.forget();
    await rm(this.git.dir, { recursive: true, force: true });
    await rename(this.partial.dir, this.git.dir);
    await this.#state.settle(state.version);
  }

  /** Saves a repository for the first time. */
  async saveFirst(git: Git, filter: GitFilter | null): Promise<MirrorState> {
    const { version, manifest } = await saveRepository(this.#savingOf(git), undefined, filter);
    return { version, manifest };
  }

  #savingOf(git: Git): Saving {
    const doubt = async (error: unknown) => {
      // What was ended from outside was not ended by what is here.
      if (isUnexplained(error) && !wasKilled(error)) await this.distrust();
    };
    return { deps: this.#deps, ref: this.#ref, git, bundles: this.bundles, doubt };
  }

  /** So that the next operation begins with what is saved: something here is not as it should be. */
  async distrust(): Promise<void> {
    await this.#state.forget();
  }

  /** What is here came unchecked. */
  async discard(): Promise<void> {
    await this.distrust();
    await this.discardPartial();
  }

  /** A clone that is not finished begins anew. */
  async discardPartial(): Promise<void> {
    await rm(this.partial.dir, { recursive: true, force: true });
  }

  /** Makes room: all of this can be had again. What readers may have open stays. */
  async evict(): Promise<void> {
    await this.discard();
    await rm(this.git.dir, { recursive: true, force: true });
    await this.removeOldBundles();
  }

  usedAtMs(): Promise<number> {
    return usedAtMs(this.root);
  }

  async remove(): Promise<void> {
    // A file in its place has no state.
    await this.distrust().catch(() => undefined);
    await rm(this.root, { recursive: true, force: true });
    await rm(`${this.root}.lock`, { force: true });
  }

  /** Those that nobody has disposed of. */
  async removeOldBundles(): Promise<void> {
    for (const name of await namesIn(this.bundles)) {
      const path = join(this.bundles, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && Date.now() - found.mtimeMs > bundleAgeMs) await rm(path, { force: true });
    }
  }
}

/** When somebody has last done something in a folder: each operation touches its lock. */
export async function usedAtMs(root: string): Promise<number> {
  return (await stat(`${root}.lock`).catch(() => undefined))?.mtimeMs ?? 0;
}
