import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { orAfter } from '../../../../base/async.ts';
import { clearMountPoints, freeName, plainHomeIn } from '../../drivers/bubblewrap/mountPoints.ts';
import { driveInside } from '../../drivers/bubblewrap/view.ts';
import { ifThere } from '../../system/ifThere.ts';
import { findSystemProgram, runHere } from '../../system/programs.ts';
import { inMountinfo } from '../disks/image.ts';
import { computerLayout, type HostLayout, rootIn } from '../layout.ts';
import type { ComputerRecord } from '../records.ts';

/** The folder in a home for names that stay on the computer. Beside a root file system it has no dot. */
const localName = '.drive-local';
/** The folder in a home for files that the drive does not take any more. */
const asideName = 'drive.unsent';

/** Why this machine cannot mount drives. Undefined if it can. */
export function missingForDrives(): string | undefined {
  if (process.platform !== 'linux') return 'drives inside computers need Linux';
  if (!existsSync('/dev/fuse')) return 'this machine has no /dev/fuse; load the kernel module fuse, or pass the device';
  if (process.getuid?.() === 0) return undefined;
  if (findSystemProgram('fusermount3') === undefined) {
    return 'fusermount3 is missing; install it (Debian and Ubuntu: apt-get install fuse3)';
  }
  return mayMount() ? undefined : '/dev/fuse may be opened by root only; allow it with chmod 666 /dev/fuse';
}

function mayMount(): boolean {
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes the folder in which drives are mounted. Mounts there show up in the sandboxes that have a part of it, also a
 * mount that replaces one whose program was killed. That holds for holders that start later: each has a view of its own
 * of the mounts, which follows those that are shared when it begins.
 */
export async function shareMounts({ drives }: HostLayout): Promise<void> {
  mkdirSync(drives, { recursive: true });
  chmodSync(drives, 0o711);
  if (process.getuid?.() !== 0) return;
  if (!isMountPoint(drives)) await runHere('mount', ['--bind', drives, drives]);
  // An earlier process may have been killed in between.
  await runHere('mount', ['--make-shared', drives]);
}

export async function unshareMounts({ drives }: HostLayout): Promise<void> {
  if (process.getuid?.() === 0 && isMountPoint(drives)) await runHere('umount', ['--lazy', drives]);
}

/** How long the program of a mount may take to say what is there. */
const answerMs = 2_000;

/** Removes a mount whose program is gone or does not answer. One that is alive stays. */
export async function removeDeadMount(target: string): Promise<void> {
  while (isMountPoint(target)) {
    const answers = stat(target).then(
      () => true,
      ({ code }: NodeJS.ErrnoException) => code !== 'ENOTCONN' && code !== 'ECONNABORTED',
    );
    if (await orAfter(answers, answerMs, false)) return;
    await takeAway(target);
  }
}

/** Removes a mount although programs use it. What they wait for there fails. */
export async function takeAway(target: string): Promise<void> {
  if (!isMountPoint(target)) return;
  if (process.getuid?.() === 0) await runHere('umount', ['--force', '--lazy', '--no-canonicalize', target]);
  else await runHere('fusermount3', ['-u', '-z', target]);
}

/** Does not look at the place itself, which a dead mount makes unreadable. */
function isMountPoint(path: string): boolean {
  return mountsIn(ifThere(() => readFileSync('/proc/self/mountinfo', 'utf8')) ?? '').includes(
    `${inMountinfo(dirname(path))}/${basename(path)}`,
  );
}

/** Whether a process sees a mount at the drive's place, in its sandbox or while that is made. */
export function seesDrive(pid: number): boolean {
  const text = ifThere(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8')) ?? '';
  return mountsIn(text).some((point) => point.endsWith(driveInside));
}

const mountsIn = (mountinfo: string) => mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '');

/** Where the drive of a computer is on its host. */
export interface DrivePlace {
  /** Where it is mounted. */
  target: string;
  localDir: string;
  asideDir: string;
  /** The owner of what is shown. */
  uid: number;
  gid: number;
  /** What was at its place in the home, under its new name. */
  moved?: string;
}

/**
 * Makes the places for the drive of a computer in which nothing runs. What the tenant has at the drive's place is kept
 * under another name.
 */
export function prepareDrive(layout: HostLayout, record: ComputerRecord): DrivePlace | { refused: string } {
  try {
    return placeFor(layout, record);
  } catch (error) {
    // Its limit of disk is a quota of its file system.
    if (['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return { refused: 'The home of the computer is full. Remove files, and start it again.' };
    throw error;
  }
}

function placeFor(layout: HostLayout, { computerId, base, uid }: ComputerRecord): DrivePlace | { refused: string } {
  const { home: volume, drive: target } = computerLayout(layout, computerId);
  const folder = base === undefined ? volume : plainHomeIn(rootIn(volume));
  if (folder === undefined) return { refused: 'The home of the computer is no folder.' };
  mkdirSync(target, { recursive: true, mode: 0o755 });
  const owner = ownerIn(folder, base === undefined ? null : uid);
  const inHome = join(folder, basename(driveInside));
  const moved = makeWay(inHome);
  makeFolderFor(inHome, folder);
  // Beside a root file system no program of the tenant gets at it.
  const root = realpathSync(volume);
  const localDir = join(root, base === undefined ? localName : localName.slice(1));
  const asideDir = join(root, relative(volume, folder), asideName);
  if (base === undefined) clearMountPoints(volume, [{ path: localName, isFolder: true }]);
  makeFolderFor(localDir, folder);
  return { target, localDir, asideDir, ...owner, ...(moved !== undefined && { moved }) };
}

/** Makes a folder that belongs to the owner of the home. */
function makeFolderFor(path: string, home: string): void {
  if (existsSync(path)) return;
  const { uid, gid } = statSync(home);
  mkdirSync(path, { mode: 0o755 });
  chownSync(path, uid, gid);
}

/** The owner of a home as this machine knows them. In a root file system, ids begin with those of its range. */
function ownerIn(folder: string, firstUid: number | null): { uid: number; gid: number } {
  const { uid, gid } = statSync(folder);
  return { uid: (firstUid ?? 0) + uid, gid: (firstUid ?? 0) + gid };
}

/** Renames what is there, unless it is an empty folder. Returns its new name. */
function makeWay(path: string): string | undefined {
  const stat = ifThere(() => lstatSync(path));
  if (stat === undefined || (stat.isDirectory() && readdirSync(path).length === 0)) return undefined;
  const name = freeName(`${path}.before`);
  renameSync(path, name);
  return name;
}
