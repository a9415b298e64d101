import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync, truncateSync } from 'node:fs';
import { dirname } from 'node:path';
import { run } from '../../spawner/spawner.ts';
import { ifThere } from '../../system/ifThere.ts';
import { runHere } from '../../system/programs.ts';
import { isTaken } from '../hostLock.ts';
import type { HostLayout } from '../layout.ts';
import { type DiskRoom, roomIn } from './disks.ts';

// btrfs turns read-only for all homes when it cannot write a block, so the file behind it never lacks one: the file is
// allocated before btrfs may use it, and grows with the homes. On a full disk, programs just find their homes full.

export interface Image {
  image: string;
  /** Where it is mounted. */
  homes: string;
  /** The most that it may have. Undefined: as much as its disk allows. */
  sizeMiB?: number | undefined;
}

const mebibyte = 1_048_576;
const shortestStepBytes = 1_024 * mebibyte;
const longestStepBytes = 4_096 * mebibyte;
/** The share of its disk that a step may be. On a small disk the rest is needed for other things. */
const stepShare = 1 / 8;
/** A smaller step is not worth it. */
const leastStepBytes = 64 * mebibyte;
/** The share of what its disk has free that the image may take. The rest is for everything else on that disk. */
const share = 0.8;
const resizeTimeoutMs = 60_000;

const wholeMiB = (bytes: number) => Math.floor(bytes / mebibyte) * mebibyte;

/** The size of a new image. */
export const firstBytes = (place: Image) => Math.min(mostBytes(place), stepBytes(place.image));

/** The size up to which the image may grow now. */
function mostBytes({ image, sizeMiB = Number.POSITIVE_INFINITY }: Image): number {
  return wholeMiB(Math.min(sizeMiB * mebibyte, withinReach(image) * share));
}

/** The image grows when it has less free room than this, and by as much. */
const stepBytes = (image: string) =>
  wholeMiB(Math.min(longestStepBytes, Math.max(shortestStepBytes, withinReach(image) * stepShare)));

/** What the image has of its disk, and what is free there. */
const withinReach = (image: string) => roomIn(dirname(image)).freeBytes + allocatedBytes(image);

const sizeOf = (image: string) => statSync(image, { throwIfNoEntry: false })?.size ?? 0;
const allocatedBytes = (image: string) => (statSync(image, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
/** What the disk still owes the image. A file system may count a little differently, so some is tolerated. */
const holesOf = (image: string) => {
  const holes = sizeOf(image) - allocatedBytes(image);
  return holes > mebibyte ? holes : 0;
};

/** The room for homes: what is free in the image, and what it may still grow by. */
export function roomInImage(place: Image): DiskRoom {
  const { totalBytes, freeBytes } = roomIn(place.homes);
  const { image } = place;
  if (holesOf(image) > 0) return { totalBytes, freeBytes: Math.min(freeBytes, roomIn(dirname(image)).freeBytes) };
  const more = Math.max(0, mostBytes(place) - sizeOf(image));
  return { totalBytes: totalBytes + more, freeBytes: freeBytes + more };
}

/** Gives the file all blocks from `from` to `to`. Safe only for a part that nobody uses yet. */
export async function allocate(image: string, from: number, to: number): Promise<void> {
  try {
    // With --posix, it writes zeros if the file system cannot allocate.
    const part = ['--offset', String(from), '--length', String(to - from)];
    await runHere('fallocate', ['--posix', ...part, image], { timeoutMs: resizeTimeoutMs });
  } catch (error) {
    truncateSync(image, from);
    throw error;
  }
}

/** Whether the disk lacks blocks that the image will need soon. */
export const isDiskShort = (image: string) =>
  roomIn(dirname(image)).freeBytes < Math.min(holesOf(image), stepBytes(image) / 16);

/** Lets the image grow before the homes need it, and fills holes in its file. */
export async function growImage(place: Image): Promise<void> {
  const { image, homes } = place;
  const holes = holesOf(image);
  if (holes > 0 && roomIn(dirname(image)).freeBytes > holes) {
    await run('fallocate', ['--length', String(sizeOf(image)), image], { timeoutMs: resizeTimeoutMs });
  }
  const size = sizeOf(image);
  const step = stepBytes(image);
  const wanted = Math.min(mostBytes(place), size + step);
  const isShort = roomIn(homes).freeBytes < step;
  if (isShort && holesOf(image) === 0 && wanted - size >= leastStepBytes) await allocate(image, size, wanted);
  if (roomIn(homes).totalBytes < sizeOf(image)) await resize(place, 'max');
}

/** Gives room that no home needs back to the disk. */
export async function shrinkImage(place: Image): Promise<void> {
  const { image, homes } = place;
  const usage = await run('btrfs', ['filesystem', 'usage', '--raw', homes]);
  const usedBytes = Number(/Device allocated:\s+(\d+)/.exec(usage)?.[1] ?? Number.POSITIVE_INFINITY);
  const step = stepBytes(image);
  const wanted = Math.ceil((usedBytes + step) / mebibyte) * mebibyte;
  if (!(sizeOf(image) - wanted > step)) return;
  await resize(place, String(wanted));
  if (roomIn(homes).totalBytes <= wanted) truncateSync(image, wanted);
  await resize(place, 'max');
}

async function resize({ homes }: Image, to: string): Promise<void> {
  if (to === 'max') await run('losetup', ['--set-capacity', mountOf(homes)?.source ?? '']);
  await run('btrfs', ['filesystem', 'resize', to, homes], { timeoutMs: resizeTimeoutMs });
}

interface Mount {
  /** The device. */
  source: string;
  isReadOnly: boolean;
}

/** A folder's path as the kernel lists it. */
export const inMountinfo = (folder: string) =>
  (ifThere(() => realpathSync(folder)) ?? folder).replaceAll('\\', '\\134').replaceAll(' ', '\\040');

/** What is mounted on a folder. */
export function mountOf(folder: string): Mount | undefined {
  const mountinfo = ifThere(() => readFileSync('/proc/self/mountinfo', 'utf8')) ?? ''; // macOS has none
  const point = inMountinfo(folder);
  const line = mountinfo.split('\n').findLast((each) => each.split(' ')[4] === point);
  const [, ofFileSystem = ''] = line?.split(' - ') ?? [];
  const [, source = '', options = ''] = ofFileSystem.split(' ');
  return line === undefined ? undefined : { source, isReadOnly: options.split(',').includes('ro') };
}

/** Why nothing can be written to the mounted homes. btrfs makes itself read-only after an error. */
export function faultOfHomes(homes: string): string | undefined {
  return mountOf(homes)?.isReadOnly === true
    ? 'the file system of the homes is read-only after an error (the kernel’s log says which)'
    : undefined;
}

/** The same for a host's folder, also while its host runs and cannot mount the homes again. */
export function faultOfHost({ homes, image, lock }: Pick<HostLayout, 'homes' | 'image' | 'lock'>): string | undefined {
  if (mountOf(homes) === undefined && existsSync(image) && isTaken(lock)) return 'the homes are not mounted';
  return faultOfHomes(homes);
}

/** Processes that keep a mounted device in a mount namespace other than ours. */
export function keepersOf(device: string): number[] {
  const own = readlinkSync('/proc/self/ns/mnt');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isOther = readlinkSync(`/proc/${pid}/ns/mnt`) !== own;
        return isOther && readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(` btrfs ${device} `);
      } catch {
        return false; // it has ended
      }
    })
    .map(Number);
}
