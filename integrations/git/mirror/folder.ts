import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitConfig } from '../../../config/git.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import type { ObjectStore } from '../../storage/objectStore.ts';
import { noAuthorities } from '../process/environment.ts';
import { Git } from '../process/git.ts';
import { type FolderLock, lockFolder, tryLockFolder } from '../process/lock.ts';
import { isUnexplained, wasKilled } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { type Saving, savePacks, saveRepository } from '../saving/save.ts';
import { putTogether } from '../saving/together.ts';
import type { GitFilter, MirrorRecords, MirrorState, RepositoryRef, SavedMirror } from '../types.ts';
import { FolderState } from './folderState.ts';
import { initRepository, namesIn, packsIn, writeManifest } from './repository.ts';
import { isConnected, takeInOwn } from './takeIn.ts';

/** Free space on a disk. */
export interface FreeSpace {
  bytes: number;
  /** How many more files the disk can hold. */
  files: number;
}

export interface FolderDeps {
  config: GitConfig;
  records: MirrorRecords;
  storage: Pick<ObjectStore, 'read' | 'write'>;
  logger?: Pick<Logger, 'warn'>;
  /** The free space where mirrors are. By default the system is asked. */
  freeSpace?: (folder: string) => FreeSpace | Promise<FreeSpace>;
  /** After this many bundles, one complete bundle replaces them if there is room, because a restore reads them all. */
  maxChain?: number;
}

const bundleAgeMs = 86_400_000;

/**
 * One repository's folder on this machine, locked. `mirror.git` is a cache of the bundles in the object store,
 * `partial.git` an unfinished clone, and `bundles` has files for readers.
 */
export class MirrorFolder implements AsyncDisposable {
  readonly root: string;
  readonly git: Git;
  readonly partial: Git;
  readonly bundles: string;
  readonly #state: FolderState;
  readonly #deps: FolderDeps;
  readonly #ref: RepositoryRef;
  readonly #lock: FolderLock;

  private constructor(deps: FolderDeps, ref: RepositoryRef, lock: FolderLock, signal: AbortSignal) {
    this.#deps = deps;
    this.#ref = ref;
    this.#lock = lock;
    this.root = MirrorFolder.pathOf(deps.config, ref);
    const [dir, home] = [join(this.root, 'mirror.git'), join(this.root, 'home')];
    this.git = new Git({ config: deps.config, dir, home, lock: lock.descriptor, signal });
    this.partial = this.git.at(join(this.root, 'partial.git'));
    this.bundles = join(this.root, 'bundles');
    this.#state = new FolderState(this.root, this.git);
  }

  static pathOf(config: GitConfig, { itemId }: RepositoryRef): string {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(itemId)) throw new Error('The id of an item is not a folder name.');
    return join(config.dir, itemId);
  }

  /** Waits for the lock, and makes the folder ready for git. */
  static async lock(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<MirrorFolder> {
    const lock = await lockFolder(`${MirrorFolder.pathOf(deps.config, ref)}.lock`, signal);
    try {
      const folder = new MirrorFolder(deps, ref, lock, signal);
      await mkdir(join(folder.git.home, noAuthorities), { recursive: true, mode: 0o700 });
      return folder;
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Locks the folder to tidy it up without git. Undefined while another operation works in it. */
  static async tryLock(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<MirrorFolder | undefined> {
    const lock = await tryLockFolder(`${MirrorFolder.pathOf(deps.config, ref)}.lock`, signal);
    return lock && new MirrorFolder(deps, ref, lock, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
  }

  /** Brings the mirror to the saved state. Reads the bundles that this machine lacks from the object store. */
  async open(saved: SavedMirror): Promise<void> {
    const state = await this.#state.read();
    if (state?.version === saved.version && state.isClean) return;
    await this.removeOldBundles();
    const { git } = this;
    const isUsable = state !== undefined && state.version <= saved.version && (await this.#state.undo(state));
    const from = isUsable ? state.version : 0;
    if (!isUsable) await initRepository(git, saved.manifest.filter);
    await this.#state.begin(from);
    for (const { version, objectKey } of saved.bundles) {
      if (version > from) await this.#takeIn(objectKey, saved.manifest);
    }
    await writeManifest(git, saved.manifest);
    if (!isUsable && !(await isConnected(git, saved.manifest.filter))) {
      throw gitError('GIT_FAILED', 'The repository cannot be restored: its bundles lack objects.');
    }
    await this.#state.settle(saved.version);
  }

  async #takeIn(objectKey: string, manifest: SavedMirror['manifest']): Promise<void> {
    const { storage } = this.#deps;
    try {
      await takeInOwn(this.git, await storage.read(objectKey), manifest);
    } catch (error) {
      this.git.signal.throwIfAborted();
      // Git stops at a damaged bundle before its end. Read all of it, so that the store reports the damage.
      for await (const _bytes of await storage.read(objectKey));
      throw error;
    }
  }

  /**
   * Runs work that changes the mirror, and saves the change: the bundle first, then the row. A change that fails in
   * between leaves refs and objects that the next operation undoes.
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

  /** Runs work that brings objects without moving a ref, and saves them: another machine may need them next. */
  async enrich(saved: SavedMirror, work: (git: Git) => Promise<void>): Promise<void> {
    const before = await packsIn(this.git);
    await this.#state.begin(saved.version);
    await work(this.git);
    const added = (await packsIn(this.git)).filter((name) => !before.includes(name));
    await this.#state.settle(await savePacks(this.#savingOf(this.git), saved, added));
  }

  /** Saves the finished clone for the first time, and makes it the mirror. */
  async adopt(filter: GitFilter | null): Promise<MirrorState> {
    const { version, manifest } = await saveRepository(this.#savingOf(this.partial), undefined, filter);
    await this.#state.forget();
    await rm(this.git.dir, { recursive: true, force: true });
    await rename(this.partial.dir, this.git.dir);
    await this.#state.settle(version);
    return { version, manifest };
  }

  #savingOf(git: Git): Saving {
    const doubt = async (error: unknown) => {
      // A killed git says nothing about the state of its repository.
      if (isUnexplained(error) && !wasKilled(error)) await this.distrust();
    };
    return { deps: this.#deps, ref: this.#ref, git, bundles: this.bundles, doubt };
  }

  /** Makes the next operation restore the mirror from its bundles, because files here may be damaged. */
  async distrust(): Promise<void> {
    await this.#state.forget();
  }

  /** Makes the next clone start anew. */
  async discardPartial(): Promise<void> {
    await rm(this.partial.dir, { recursive: true, force: true });
  }

  /** Discards the partial clone and distrusts the mirror: both may have unchecked objects. */
  async discard(): Promise<void> {
    await this.distrust();
    await this.discardPartial();
  }

  /** Frees space by removing everything that can be restored. Files that readers may have open stay. */
  async evict(): Promise<void> {
    await this.discard();
    await rm(this.git.dir, { recursive: true, force: true });
    await this.removeOldBundles();
  }

  async remove(): Promise<void> {
    // If a file is in the folder's place, it has no state to forget.
    await this.distrust().catch(() => undefined);
    await rm(this.root, { recursive: true, force: true });
    await rm(`${this.root}.lock`, { force: true });
  }

  /** Removes bundles that were never disposed of. */
  async removeOldBundles(): Promise<void> {
    for (const name of await namesIn(this.bundles)) {
      const path = join(this.bundles, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && Date.now() - found.mtimeMs > bundleAgeMs) await rm(path, { force: true });
    }
  }
}

/** When a folder was last used: each operation touches its lock. */
export async function usedAtMs(root: string): Promise<number> {
  return (await stat(`${root}.lock`).catch(() => undefined))?.mtimeMs ?? 0;
}
