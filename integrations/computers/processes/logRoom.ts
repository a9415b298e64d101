import { lstat, readdir } from 'node:fs/promises';
import type { ComputerLimits } from '../types.ts';

const mebibyte = 1_048_576;
/** A file takes whole blocks. A process takes at least two: a folder and a description. */
const blockBytes = 4_096;

/**
 * The room for all logs of a computer on its host's disk: sixteen logs of full length, but at most a quarter of the
 * computer's own disk, and at least one log.
 */
export function roomForLogs({ maxLogBytes, diskMiB }: Pick<ComputerLimits, 'maxLogBytes' | 'diskMiB'>): number {
  return Math.min(16 * maxLogBytes, Math.max(maxLogBytes, (diskMiB * mebibyte) / 4));
}

/** A log that is being written. */
export interface GrowingLog {
  /** Its size on disk. */
  readonly diskBytes: number;
  /** Drops a part of its middle. Undefined if it has none to drop. */
  shrink(): Promise<void> | undefined;
}

/** Keeps the logs of a computer within their room: ended processes go first, then the middle of the longest log. */
export class LogRoom {
  readonly maxBytes: number;
  readonly #logs = new Set<GrowingLog>();
  readonly #kept: () => number;
  readonly #dropOldest: () => Promise<void> | undefined;

  /** `kept` returns the size of ended processes. `dropOldest` deletes one of them; undefined if there is none. */
  constructor(maxBytes: number, kept: () => number, dropOldest: () => Promise<void> | undefined) {
    this.maxBytes = maxBytes;
    this.#kept = kept;
    this.#dropOldest = dropOldest;
  }

  get usedBytes(): number {
    let bytes = this.#kept();
    for (const log of this.#logs) bytes += log.diskBytes;
    return bytes;
  }

  add(log: GrowingLog): void {
    this.#logs.add(log);
  }

  delete(log: GrowingLog): void {
    this.#logs.delete(log);
  }

  /** Drops logs until there is this much room, or nothing more can be dropped. */
  async make(bytes: number): Promise<void> {
    while (this.usedBytes + bytes > this.maxBytes) {
      const dropping = this.#dropOldest() ?? this.#shrinkLongest();
      if (dropping === undefined) return;
      await dropping;
    }
  }

  #shrinkLongest(): Promise<void> | undefined {
    for (const log of [...this.#logs].toSorted((a, b) => b.diskBytes - a.diskBytes)) {
      const shrinking = log.shrink();
      if (shrinking !== undefined) return shrinking;
    }
    return undefined;
  }
}

/** The size on disk of a folder with the files directly in it. 0 if there is none. */
export async function diskBytesOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => undefined);
  if (names === undefined) return 0;
  const sizes = await Promise.all(names.map((name) => sizeOf(`${folder}/${name}`)));
  return sizes.reduce((sum, size) => sum + blocksOf(size), blockBytes);
}

/** The size of all processes in a store's folder. No link is followed. */
export async function diskBytesOfStore(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) if (entry.isDirectory()) bytes += await diskBytesOf(`${folder}/${entry.name}`);
  return bytes;
}

export function blocksOf(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

function sizeOf(path: string): Promise<number> {
  return lstat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
