import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitConfig } from '../../../config/git.ts';
import type { ObjectStore } from '../../storage/objectStore.ts';
import { type FolderLock, lockFolder, tryLockFolder } from '../process/lock.ts';
import { gitError } from '../rules/failures.ts';
import type { MirrorRecords, MirrorState, RepositoryRef, SavedMirror } from '../types.ts';
import { makeBundle } from './bundleFile.ts';
import { Git } from './git.ts';
import {
  idsOf,
  initRepository,
  isSameManifest,
  namesIn,
  packsIn,
  readManifest,
  removeLeftovers,
  removeLooseObjects,
  removePacks,
  replaceFile,
  writeManifest,
} from './repository.ts';
import { isConnected, takeInOwn } from './takeIn.ts';

export interface FolderDeps {
  config: GitConfig;
  records: MirrorRecords;
  storage: Pick<ObjectStore, 'read' | 'write'>;
  /** After so many bundles, one of everything takes their place: a restore reads them all. */
  maxChain?: number;
}

interface FolderState {
  version: number;
  isClean: boolean;
  /** Those before the change that makes it unclean. */
  packs?: string[];
}

const defaultMaxChain = 40;
const bundleAgeMs = 86_400_000;

/**
 * What this machine has of one repository, locked: `mirror.git`, a cache of the bundles in the object store;
 * `partial.git`, a clone that is not finished; `bundles`, made for readers. `state.json` says which saved version the
 * mirror has all objects of, and whether its refs are that version's too.
 */
export class MirrorFolder implements AsyncDisposable {
  readonly root: string;
  readonly git: Git;
  readonly partial: Git;
  readonly #deps: FolderDeps;
  readonly #ref: RepositoryRef;
  readonly #unlock: AsyncDisposable;

  private constructor(deps: FolderDeps, ref: RepositoryRef, root: string, git: Git, unlock: AsyncDisposable) {
    this.#deps = deps;
    this.#ref = ref;
    this.root = root;
    this.git = git;
    this.partial = git.at(join(root, 'partial.git'));
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
      await mkdir(folder.git.home, { recursive: true, mode: 0o700 });
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
    const state = await this.#readState();
    if (state?.version === saved.version && state.isClean) return;
    await this.#removeOldBundles();
    const { git } = this;
    const isUsable = state !== undefined && state.version <= saved.version && (await this.#undo(state));
    if (!isUsable) await initRepository(git, saved.manifest.filter);
    await this.#begin(isUsable ? state.version : 0);
    const from = isUsable ? state.version : 0;
    for (const bundle of saved.bundles.filter(({ version }) => version > from)) {
      await takeInOwn(git, await this.#deps.storage.read(bundle.objectKey), saved.manifest);
    }
    await writeManifest(git, saved.manifest);
    if (!isUsable && !(await isConnected(git, saved.manifest.filter))) {
      throw gitError('GIT_FAILED', 'The repository cannot be restored: its bundles lack objects.');
    }
    await this.#writeState({ version: saved.version, isClean: true });
  }

  /**
   * Runs what changes the mirror, and saves the change: the bundle first, then the row. One that fails or is killed in
   * between leaves refs and objects that the next one puts back or removes.
   */
  async change(saved: SavedMirror | undefined, work: (git: Git) => Promise<void>): Promise<MirrorState> {
    await this.#begin(saved?.version ?? 0);
    await work(this.git);
    const state = await this.save(this.git, saved);
    await this.#writeState({ version: state.version, isClean: true });
    return state;
  }

  /** Runs what brings objects that no ref needs, and keeps them if it ends well. */
  async enrich(saved: SavedMirror, work: (git: Git) => Promise<void>): Promise<void> {
    await this.#begin(saved.version);
    await work(this.git);
    await this.#writeState({ version: saved.version, isClean: true });
  }

  /** Makes what has been cloned the mirror. */
  async adopt(state: MirrorState): Promise<void> {
    await rm(join(this.root, 'state.json'), { force: true });
    await rm(this.git.dir, { recursive: true, force: true });
    await rename(this.partial.dir, this.git.dir);
    await this.#writeState({ version: state.version, isClean: true });
  }

  /** Saves what a repository has now, unless it is what is saved already. */
  async save(git: Git, saved: SavedMirror | undefined): Promise<MirrorState> {
    const filter = saved === undefined ? await filterOf(git) : saved.manifest.filter;
    const manifest = await readManifest(git, filter);
    if (saved !== undefined && isSameManifest(saved.manifest, manifest)) return saved;
    const next = { version: (saved?.version ?? 0) + 1, manifest };
    const replacesAll = saved === undefined || saved.bundles.length >= (this.#deps.maxChain ?? defaultMaxChain);
    if (saved !== undefined && replacesAll) await git.do(['repack', '-a', '-d', '-q']);
    // A shallow clone's border belongs to all of it.
    const have = replacesAll ? [] : idsOf(saved?.manifest);
    await using made = await makeBundle(git, this.bundles, { manifest, have });
    const { records, storage, config } = this.#deps;
    let bundle: SavedMirror['bundles'][number] | null = null;
    if (made !== null) {
      // Flat and random, as all of the store's: rows say what it belongs to.
      const objectKey = randomBytes(20).toString('hex');
      await records.plan(this.#ref, objectKey);
      git.signal.throwIfAborted();
      const options = { fileName: 'repository.bundle', maxBytes: config.maxBytes * 2, reserve: async () => undefined };
      await storage.write(objectKey, made.open(), options);
      bundle = { version: next.version, objectKey, bytes: made.bytes };
    }
    const isSaved = await records.save(this.#ref, { ...next, bundle, replacesAll });
    if (!isSaved) throw gitError('GIT_CONFLICT', 'The repository has been changed by another process.');
    return next;
  }

  /** So that the next operation begins with what is saved: something here is not as it should be. */
  async distrust(): Promise<void> {
    await rm(join(this.root, 'state.json'), { force: true });
  }

  /** What is here came unchecked. */
  async discard(): Promise<void> {
    await this.distrust();
    await rm(this.partial.dir, { recursive: true, force: true });
  }

  async remove(): Promise<void> {
    // A file in its place has no state.
    await this.distrust().catch(() => undefined);
    await rm(this.root, { recursive: true, force: true });
  }

  /** From here on until the state is clean again, objects may come that nobody has checked. */
  async #begin(version: number): Promise<void> {
    await this.#writeState({ version, isClean: false, packs: await packsIn(this.git) });
  }

  /**
   * Removes what has come since a change was begun that has not ended: of a fetch that failed, git may not have checked
   * it. False where the objects that were there before are not all there.
   */
  async #undo({ isClean, packs }: FolderState): Promise<boolean> {
    const { git } = this;
    await removeLeftovers(git, { keepTemporaryPacks: false });
    if (isClean) return true;
    const now = await packsIn(git);
    if (packs === undefined || !packs.every((name) => now.includes(name))) return false;
    await removePacks(
      git,
      now.filter((name) => !packs.includes(name)),
    );
    // Git makes packs alone of what it checks.
    await removeLooseObjects(git);
    return true;
  }

  async #readState(): Promise<FolderState | undefined> {
    try {
      const state = JSON.parse(await readFile(join(this.root, 'state.json'), 'utf8')) as FolderState;
      await stat(join(this.git.dir, 'HEAD'));
      return state;
    } catch {
      return undefined;
    }
  }

  async #writeState(state: FolderState): Promise<void> {
    await replaceFile(join(this.root, 'state.json'), JSON.stringify(state));
  }

  /** Those that nobody has disposed of. */
  async #removeOldBundles(): Promise<void> {
    for (const name of await namesIn(this.bundles)) {
      const path = join(this.bundles, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined && Date.now() - found.mtimeMs > bundleAgeMs) await rm(path, { force: true });
    }
  }
}

async function filterOf(git: Git) {
  const outcome = await git.run(['config', '--file', join(git.dir, 'config'), 'remote.origin.partialclonefilter']);
  const filter = String(outcome.output).trim();
  return filter === 'blob:none' || /^blob:limit=\d+$/.test(filter) ? (filter as 'blob:none') : null;
}
