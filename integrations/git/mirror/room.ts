import { statfs } from 'node:fs/promises';
import { DomainError } from '../../../base/errors.ts';
import { gitError } from '../rules/failures.ts';
import type { RepositoryRef } from '../types.ts';
import { type FolderDeps, type FreeSpace, MirrorFolder, usedAtMs } from './folder.ts';
import { foldersOf } from './foldersOf.ts';

const lookMs = 1_000;
const makingMs = 600_000;

/** A disk may have bytes left and take no more files: each that it takes counts for so many. */
const bytesPerFile = 65_536;

/** What is free where mirrors are, and what is done when that is too little: others may need the same disk to live. */
export class MirrorRoom {
  readonly #deps: FolderDeps;
  #making: Promise<void> | undefined;

  constructor(deps: FolderDeps) {
    this.#deps = deps;
  }

  /**
   * Removes what this machine has of repositories that have not been used for longest, until so much is free. What is
   * saved of them is in the object store; a clone that has failed begins anew.
   */
  async make(leastBytes: number, signal: AbortSignal): Promise<void> {
    if ((await this.#freeBytes()) >= leastBytes) return;
    const refs = (await foldersOf(this.#deps.config.dir)).map((itemId) => ({ itemId, spaceId: '' }));
    const used = await Promise.all(
      refs.map(async (ref) => ({ ref, atMs: await usedAtMs(MirrorFolder.pathOf(this.#deps.config, ref)) })),
    );
    for (const { ref } of used.toSorted((a, b) => a.atMs - b.atMs)) {
      signal.throwIfAborted();
      if ((await this.#freeBytes()) >= leastBytes) return;
      // One that cannot be removed leaves the others to be.
      await this.#evict(ref, signal).catch(() => undefined);
    }
  }

  async #evict(ref: RepositoryRef, signal: AbortSignal): Promise<void> {
    await using folder = await MirrorFolder.tryLock(this.#deps, ref, signal);
    await folder?.evict();
  }

  /** Throws 503 `GIT_DISK_FULL` where there is too little, and nothing can be removed. */
  async require(): Promise<void> {
    const { minFreeBytes } = this.#deps.config;
    if ((await this.#freeBytes()) >= minFreeBytes) return;
    // Several may find so at once.
    this.#making ??= this.make(minFreeBytes, AbortSignal.timeout(makingMs)).finally(() => {
      this.#making = undefined;
    });
    await this.#making;
    if ((await this.#freeBytes()) >= minFreeBytes) return;
    throw gitError('GIT_DISK_FULL', 'There is too little room left on the disk for repositories.');
  }

  /** Looks from time to time; the signal is aborted with what `require` throws. */
  watch(): { signal: AbortSignal } & Disposable {
    const full = new AbortController();
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    const look = async () => {
      try {
        await this.require();
      } catch (error) {
        // What cannot be told is none of the operation's business.
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
  // Some file systems do not tell.
  return {
    bytes: blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize,
    files: files === 0 ? Number.POSITIVE_INFINITY : ffree,
  };
}
