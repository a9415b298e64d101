import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../../../base/errors.ts';
import { gitError } from '../rules/failures.ts';
import type { MirrorSweep, RepositoryRef } from '../types.ts';
import { type FolderDeps, type FreeSpace, MirrorFolder, usedAtMs } from './folder.ts';
import { namesIn } from './repository.ts';

const lookMs = 1_000;
const makingMs = 600_000;
const namesAtOnce = 200;
/** A failed clone that is not retried within this time starts anew. */
const partialAgeMs = 7 * 86_400_000;

/** A disk may run out of files before bytes. Each free file counts as this many bytes. */
const bytesPerFile = 65_536;

/** Watches the free space where mirrors are, and removes mirrors if it runs low: other programs may need the disk. */
export class MirrorRoom {
  readonly #deps: FolderDeps;
  #making: Promise<void> | undefined;

  constructor(deps: FolderDeps) {
    this.#deps = deps;
  }

  /**
   * Evicts the least recently used repositories until `leastBytes` are free. Their saved state is in the object store;
   * an unfinished clone starts anew.
   */
  async make(leastBytes: number, signal: AbortSignal): Promise<void> {
    if ((await this.#freeBytes()) >= leastBytes) return;
    const refs = (await itemsIn(this.#deps.config.dir, /^(itm_\w+)$/)).map((itemId) => ({ itemId, spaceId: '' }));
    const used = await Promise.all(
      refs.map(async (ref) => ({ ref, atMs: await usedAtMs(MirrorFolder.pathOf(this.#deps.config, ref)) })),
    );
    for (const { ref } of used.toSorted((a, b) => a.atMs - b.atMs)) {
      signal.throwIfAborted();
      if ((await this.#freeBytes()) >= leastBytes) return;
      // A repository that cannot be evicted must not stop the eviction of the others.
      await this.#evict(ref, signal).catch(() => undefined);
    }
  }

  async #evict(ref: RepositoryRef, signal: AbortSignal): Promise<void> {
    await using folder = await MirrorFolder.tryLock(this.#deps, ref, signal);
    await folder?.evict();
  }

  /** Throws 503 `GIT_DISK_FULL` if there is too little room even after evictions. */
  async require(): Promise<void> {
    const { minFreeBytes } = this.#deps.config;
    if ((await this.#freeBytes()) >= minFreeBytes) return;
    // Several operations may run out of room at once. They share one eviction.
    this.#making ??= this.make(minFreeBytes, AbortSignal.timeout(makingMs)).finally(() => {
      this.#making = undefined;
    });
    await this.#making;
    if ((await this.#freeBytes()) >= minFreeBytes) return;
    throw gitError('GIT_DISK_FULL', 'There is too little room left on the disk for repositories.');
  }

  /** Checks the room every second. The signal is aborted with the error that `require` throws. */
  watch(): { signal: AbortSignal } & Disposable {
    const full = new AbortController();
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const look = async () => {
      try {
        await this.require();
      } catch (error) {
        // Other errors say nothing about the room.
        if (error instanceof DomainError) full.abort(error);
      }
      if (!isOver && !full.signal.aborted) timer = setTimeout(() => void look(), lookMs);
    };
    timer = setTimeout(() => void look(), lookMs);
    return {
      signal: full.signal,
      [Symbol.dispose]() {
        isOver = true;
        clearTimeout(timer);
      },
    };
  }

  async #freeBytes(): Promise<number> {
    const { config, freeSpace = freeSpaceIn } = this.#deps;
    const { bytes, files } = await freeSpace(config.dir);
    return Math.min(bytes, files * bytesPerFile);
  }
}

async function freeSpaceIn(folder: string): Promise<FreeSpace> {
  const { blocks, bavail, bsize, files, ffree } = await statfs(folder);
  // Some file systems report zero totals.
  return {
    bytes: blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize,
    files: files === 0 ? Number.POSITIVE_INFINITY : ffree,
  };
}

/**
 * Removes the folders of repositories that no longer exist, and tidies the others. A folder in use, or one that cannot
 * be removed, is left to a later sweep. Returns how many folders were removed.
 */
export async function sweepFolders(deps: FolderDeps, room: MirrorRoom, sweep: MirrorSweep): Promise<number> {
  // A removed folder may have left its lock.
  const names = await itemsIn(deps.config.dir, /^(itm_\w+?)(?:\.lock)?$/);
  let removed = 0;
  for (let from = 0; from < names.length; from += namesAtOnce) {
    const some = names.slice(from, from + namesAtOnce);
    const known = await sweep.known(some);
    for (const itemId of some) {
      sweep.signal.throwIfAborted();
      const ref = { itemId, spaceId: '' };
      try {
        if (known.has(itemId)) await tidyFolder(deps, ref, sweep.signal);
        else if (await removeFolder(deps, ref, sweep.signal)) removed += 1;
      } catch (error) {
        sweep.signal.throwIfAborted();
        sweep.onFailure(itemId, error);
      }
    }
  }
  // With room in reserve, an operation seldom has to make room for itself.
  if (names.length > 0) await room.make(deps.config.minFreeBytes * 2, sweep.signal);
  return removed;
}

/** False while another operation works in the folder. */
async function removeFolder(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<boolean> {
  await using folder = await MirrorFolder.tryLock(deps, ref, signal);
  await folder?.remove();
  return folder !== undefined;
}

async function tidyFolder(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<void> {
  const root = MirrorFolder.pathOf(deps.config, ref);
  const hasPartial = (await stat(join(root, 'partial.git')).catch(() => undefined)) !== undefined;
  if (!hasPartial && (await namesIn(join(root, 'bundles'))).length === 0) return;
  await using folder = await MirrorFolder.tryLock(deps, ref, signal);
  if (folder === undefined) return;
  await folder.removeOldBundles();
  // Another machine may have finished the clone.
  const isUseless =
    (await deps.records.current(ref)) !== undefined || Date.now() - (await usedAtMs(root)) > partialAgeMs;
  if (hasPartial && isUseless) await folder.discardPartial();
}

/** Ids of items whose folders, or other files, are here. */
async function itemsIn(dir: string, pattern: RegExp): Promise<string[]> {
  try {
    return [...new Set((await readdir(dir)).flatMap((name) => pattern.exec(name)?.[1] ?? []))];
  } catch (error) {
    // Before the first clone there is no folder.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
