import { statfsSync } from 'node:fs';
import type { ComputerLimits } from '../../types.ts';

/** The name of a copy until it is finished. */
export const unfinished = (home: string) => `${home}.fork`;

/** Stores the homes of computers, and keeps each within its limit. */
export interface Disks {
  /** `limited`: the file system refuses more than the limit. `watched`: the host checks the use from time to time. */
  kind: 'limited' | 'watched';
  /**
   * Makes a home, or keeps the existing one, and sets its owner (undefined: us) and limit (undefined: none yet). A new
   * one is empty, or a copy of the volume `from`.
   */
  create(
    home: string,
    options: { uid: number | undefined; limitMiB: number | undefined; from?: string | undefined },
  ): Promise<void>;
  /** Begins a copy of a home. The home must not change meanwhile. Removes an earlier unfinished copy. */
  snapshot(from: string, to: string, signal: AbortSignal): Promise<void>;
  /**
   * Gives the copy to `uid`, sets its limit, and renames it into place. An earlier home there is removed before.
   * `onWhole` is called right before that, when the copy is whole and on the disk.
   */
  finish(
    to: string,
    options: { uid: number | undefined; limitMiB: number; signal: AbortSignal; onWhole?: () => void },
  ): Promise<void>;
  room(): DiskRoom;
  usedBytes(home: string): Promise<number>;
  remove(home: string): Promise<void>;
  /** Keeps room ahead of what the homes use. Called again and again, by one process. */
  tend(): Promise<void>;
  /** Why no home can be used now. Undefined if they can. */
  fault(): string | undefined;
  /** Makes the homes usable again after a fault, once that can work. `release` ends everything that uses them. */
  mend(release: () => Promise<void>): Promise<void>;
  /** Unmounts the homes. None may be in use. */
  close(): Promise<void>;
}

/** The room for all homes of a host together. */
export interface DiskRoom {
  totalBytes: number;
  freeBytes: number;
}

/**
 * Limit for a home as a stream, in bytes. Names of deep folders, and files that share bytes, can make the stream far
 * longer than the home on its disk.
 */
export const mostStreamBytes = ({ diskMiB }: Pick<ComputerLimits, 'diskMiB'>) => (2 * diskMiB + 1_024) * 1_048_576;

/** The room that a new home needs. */
export const leastForHome = 64 * 1_048_576;
/** The operator is warned when less than this share is free. */
const scarce = 0.1;

export const isScarce = ({ totalBytes, freeBytes }: DiskRoom) => freeBytes < totalBytes * scarce;

export function roomIn(folder: string): DiskRoom {
  const { blocks, bavail, bsize } = statfsSync(folder);
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}

export function describeRoom({ totalBytes, freeBytes }: DiskRoom): string {
  const inGiB = (bytes: number) => (bytes / 1_073_741_824).toFixed(1);
  return `${inGiB(freeBytes)} of ${inGiB(totalBytes)} GiB are free for homes`;
}

/** Whether a failure, ours or a program's, means that a disk is full. */
export function isDiskFull(error: unknown): boolean {
  // The last is GNU tar's.
  return /ENOSPC|no space left on device|Wrote only \d+ of \d+ bytes/i.test(
    error instanceof Error ? error.message : String(error),
  );
}
