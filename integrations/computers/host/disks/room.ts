import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';

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
