import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolderDurablySync } from '../disk/durable.ts';
import { StackError } from './errors.ts';
import { type HeldLock, tryLock } from './fileLock.mjs';

/** Where root keeps files that the services' users must reach when the usual folder is closed to them. */
const sharedRoot = '/var/lib/atrium';

/** Whether users other than the owner can reach this path: each folder above it must let them through. */
export function isReachableByOthers(path: string): boolean {
  for (let folder = dirname(realpathSync(path)); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** Makes the data directory with its folders for locks, pid files and logs. */
export function prepareDataDir(dataDir: string): void {
  const fault = faultOfDataDir(dataDir);
  if (fault !== undefined) throw new StackError(fault);
  try {
    makeFolderDurablySync(dataDir);
    accessSync(dataDir, constants.W_OK);
    if (statSync(dataDir).uid === process.getuid?.()) chmodSync(dataDir, 0o711);
    for (const name of ['run', 'logs']) makeFolderDurablySync(join(dataDir, name), 0o700);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    const advice = code === 'EACCES' || code === 'EPERM' ? 'Start as its owner, or set' : 'Set';
    throw new StackError(
      `The data directory ${dataDir} cannot be written (${code}). ${advice} ATRIUM_DATA_DIR to a folder on a disk.`,
    );
  }
}

/** Why nothing can be in this data directory: it, or something above it, is no folder. Undefined where all is well. */
export function faultOfDataDir(dataDir: string): string | undefined {
  for (let path = dataDir; ; path = dirname(path)) {
    const found = lookAt(path);
    if (found?.isDirectory() || path === dirname(path)) return undefined;
    if (found === undefined) continue;
    const where = path === dataDir ? `The data directory ${path}` : `${path}, above the data directory ${dataDir},`;
    return `${where} is a file, not a folder. Move it away, or set ATRIUM_DATA_DIR to a folder.`;
  }
}

/** Undefined where nothing is there, or where it may not be looked at. */
function lookAt(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/**
 * The folder of the services' data: `services` in the data directory. If root runs Atrium and the data directory lies
 * below a folder that only root may enter (/root, a private temporary folder), the services' users could not reach it.
 * Then `services` is a link to a folder under /var/lib/atrium.
 */
export function prepareServicesDir(dataDir: string): string {
  const path = join(dataDir, 'services');
  const asRoot = process.getuid?.() === 0;
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
    if (asRoot && !isReachableByOthers(dataDir)) {
      symlinkSync(makeSharedFolder(`data-${randomBytes(6).toString('hex')}`), path);
    } else {
      mkdirSync(path);
    }
  }
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    // Never made anew: that would replace a full database with an empty one.
    throw new StackError(
      `${path} is a link to data that are not there. Bring them back, or remove the link to begin afresh.`,
    );
  }
  const real = realpathSync(path);
  if (asRoot && !isReachableByOthers(real)) {
    const elsewhere = join(sharedRoot, 'data-moved');
    throw new StackError(
      `${real} lies below a folder that only root may enter, where the services' users cannot go. Move it: mv ${real} ${elsewhere} && ln -s ${elsewhere} ${path}`,
    );
  }
  if (statSync(real).uid === process.getuid?.()) chmodSync(real, 0o711);
  return real;
}

/** Removes a data directory and the folder that `services` links to. Only tests use it; nothing else removes data. */
export function removeDataDir(dataDir: string): void {
  const services = join(dataDir, 'services');
  if (statSync(services, { throwIfNoEntry: false }) !== undefined) {
    rmSync(realpathSync(services), { recursive: true, force: true });
  }
  rmSync(dataDir, { recursive: true, force: true });
}

/** Makes a folder below `sharedRoot` that all users may enter, regardless of root's umask. */
export function makeSharedFolder(name: string): string {
  const folder = join(sharedRoot, name);
  for (const path of [sharedRoot, folder]) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  }
  return folder;
}

/** Lets only one Atrium at a time use a data directory. A lock whose owner was killed is taken over. */
export function lockDataDir(dataDir: string): HeldLock {
  const path = resolve(dataDir);
  prepareDataDir(path);
  const result = tryLock(join(path, 'lock'));
  if (result.release !== undefined) return result;
  throw new StackError(
    `Atrium runs already with ${path} (process ${result.owner.pid}). Stop that one, or set ATRIUM_DATA_DIR to another folder.`,
  );
}
