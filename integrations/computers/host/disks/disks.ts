import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';

/** What a copy is called until it is finished. */
export const unfinished = (home: string) => `${home}.fork`;

/** Where the homes of computers are, and what keeps each within its limit. */
export interface Disks {
  /** `limited`: the file system refuses what is over the limit. Else the host looks at what is used from time to time. */
  kind: 'limited' | 'watched';
  /**
   * Makes a home that belongs to `uid` (undefined: to us), or leaves the one that is there, and sets its limit (undefined:
   * none yet).
   */
  create(home: string, options: { uid: number | undefined; limitMiB: number | undefined }): Promise<void>;
  /** Begins a copy, of a home that changes no more until this is done; what was begun before is removed. */
  snapshot(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** Gives what was begun to `uid`, however long that takes, and sets its limit: then it is there as a whole. */
  finish(to: string, options: { uid: number | undefined; limitMiB: number; signal: AbortSignal }): Promise<void>;
  /** What all homes together have and may still take. */
  room(): DiskRoom;
  usedBytes(home: string): Promise<number>;
  remove(home: string): Promise<void>;
  /** Gives back what was mounted. Nothing may use a home any more. */
  close(): Promise<void>;
}

/** What there is for all homes of a host together. */
export interface DiskRoom {
  totalBytes: number;
  freeBytes: number;
}

/** A new home needs some to begin with. */
export const leastForHome = 64 * 1_048_576;
/** Below this share somebody has to be told. */
const scarce = 0.1;

export const isScarce = ({ totalBytes, freeBytes }: DiskRoom) => freeBytes < totalBytes * scarce;

export function roomIn(folder: string): DiskRoom {
  const { blocks, bavail, bsize } = statfsSync(folder);
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}

/** The image grows into the disk that it is on, so what others have left there counts as well. */
export function roomInImage(homes: string, image: string): DiskRoom {
  const own = roomIn(homes);
  return { ...own, freeBytes: Math.min(own.freeBytes, roomIn(dirname(image)).freeBytes) };
}

export function describeRoom({ totalBytes, freeBytes }: DiskRoom): string {
  const inGiB = (bytes: number) => (bytes / 1_073_741_824).toFixed(1);
  return `${inGiB(freeBytes)} of ${inGiB(totalBytes)} GiB are free for homes`;
}

/** Whether a failure, of ours or told by a program, is for want of room on a disk. */
export function isDiskFull(error: unknown): boolean {
  return /ENOSPC|no space left on device/i.test(error instanceof Error ? error.message : String(error));
}
