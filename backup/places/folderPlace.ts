import { constants, type Dirent } from 'node:fs';
import { lstat, open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { makeFolderDurably, unfinished, writeDurably } from '../../disk/durable.ts';
import { BackupError, DamageError } from '../errors.ts';
import type { Place } from './place.ts';

/** A file is larger than the limit. The message is its name. */
class TooLarge extends Error {}

/** Keeps backups in a folder, such as one on another disk or machine. */
export function folderPlace(path: string): Place {
  const root = resolve(path);
  return {
    title: root,
    exists: async () => (await told(root, stat(root).catch(absent))) !== undefined,
    list: (prefix) => namesBelow(root, prefix),
    read: (name, mostBytes) => told(root, readWhole(root, name, mostBytes).catch(absent)),
    write: (name, bytes) => told(root, writeWhole(root, name, bytes)),
    async remove(names) {
      for (const name of names) await told(root, removeFile(root, name));
    },
    close: () => undefined,
  };
}

/**
 * Throws if one of our folders was replaced by a link to another. A writer without the key must not lead us out of the
 * place. Also throws if the folder does not exist.
 */
async function assertInside(root: string, folder: string): Promise<void> {
  const [own, found] = await Promise.all([realpath(root), realpath(join(root, folder))]);
  if (found !== resolve(own, folder)) throw new BackupError(`${join(root, folder)} is a link to another folder`);
}

/** Undefined for anything but an ordinary file. Reading a pipe would never end. */
async function readWhole(root: string, name: string, mostBytes: number): Promise<Buffer | undefined> {
  await assertInside(root, dirname(name));
  const found = await lstat(join(root, name));
  if (!found.isFile()) return undefined;
  const handle = await open(join(root, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = await handle.stat();
    if (size > mostBytes) throw new TooLarge(name);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

async function removeFile(root: string, name: string): Promise<void> {
  try {
    await assertInside(root, dirname(name));
  } catch (error) {
    return absent(error as NodeJS.ErrnoException);
  }
  await rm(join(root, name), { force: true });
}

async function writeWhole(root: string, name: string, bytes: Buffer): Promise<void> {
  await makeFolderDurably(dirname(join(root, name)), 0o700);
  await assertInside(root, dirname(name));
  await writeDurably(join(root, name), bytes);
}

async function* namesBelow(root: string, prefix: string): AsyncGenerator<string> {
  const cut = prefix.lastIndexOf('/') + 1;
  const [folder, begin] = [prefix.slice(0, cut), prefix.slice(cut)];
  const entries = (await told(root, entriesOf(root, folder).catch(absent))) ?? [];
  for (const entry of entries) {
    if (!entry.name.startsWith(begin) || entry.name.includes(unfinished)) continue;
    const name = `${folder}${entry.name}`;
    if (entry.isDirectory()) yield* namesBelow(root, `${name}/`);
    else if (entry.isFile()) yield name;
  }
}

async function entriesOf(root: string, folder: string): Promise<Dirent[]> {
  await assertInside(root, folder);
  return readdir(join(root, folder), { withFileTypes: true });
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Adds the folder to a failure of the disk. */
async function told<T>(root: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TooLarge) throw new DamageError(`${error.message} in ${root} is damaged: it is too large.`);
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOSPC' ? 'the disk is full' : message;
    throw new BackupError(`The folder for backups ${root} cannot be used: ${reason}.`, { cause: error });
  }
}
