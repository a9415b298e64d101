import { randomBytes } from 'node:crypto';
import { link, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../config/index.ts';
import { createDurably, makeFolderDurably, syncFolder } from '../disk/durable.ts';
import { keyBytes } from './aead.ts';

/** The file's name in the data directory. */
export const masterKeyFileName = 'master.key';
/** The key that a rotation is about to make current. It wraps already. */
export const nextKeyFileName = 'master.key.next';
/** The key before the last rotation. A process that has not noticed the rotation yet may still wrap under it. */
export const previousKeyFileName = 'master.key.previous';

/**
 * Reads the data directory's master key, or makes it at the first start: 32 random bytes in base64, readable only by
 * the owner. Losing this file means losing every secret, so it is synced to disk before use.
 */
export async function readOrCreateMasterKey(dataDir: string): Promise<Buffer> {
  const file = path.join(dataDir, masterKeyFileName);
  try {
    return await readMasterKey(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await makeFolderDurably(dataDir);
  await createMasterKey(file);
  return readMasterKey(file);
}

/**
 * All keys of the data directory, the current one first. The next key is read before the current one, because a
 * rotation may promote it meanwhile. In the other order it could be missed in both places.
 */
export async function readMasterKeys(dataDir: string): Promise<Buffer[]> {
  const next = await readIfThere(path.join(dataDir, nextKeyFileName));
  const current = await readIfThere(path.join(dataDir, masterKeyFileName));
  const previous = await readIfThere(path.join(dataDir, previousKeyFileName));
  return [current, next, previous].filter((key) => key !== undefined);
}

async function readIfThere(file: string): Promise<Buffer | undefined> {
  try {
    return await readMasterKey(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The key that a rotation changes to. An interrupted rotation continues with the same key. */
export async function readOrCreateNextMasterKey(dataDir: string): Promise<Buffer> {
  const file = path.join(dataDir, nextKeyFileName);
  await createMasterKey(file);
  return readMasterKey(file);
}

/**
 * Makes the next key the current one. Each step leaves both keys on disk under some name, so an interruption never
 * loses a key that wraps anything.
 */
export async function promoteNextMasterKey(dataDir: string): Promise<void> {
  const [current, next, previous] = [masterKeyFileName, nextKeyFileName, previousKeyFileName].map((name) =>
    path.join(dataDir, name),
  ) as [string, string, string];
  await rm(previous, { force: true });
  await link(current, previous);
  await rename(next, current);
  await syncFolder(dataDir);
}

/** If several processes start for the first time at once, one wins. None ever reads half a key. */
async function createMasterKey(file: string): Promise<void> {
  await createDurably(file, `${randomBytes(keyBytes).toString('base64')}\n`);
}

async function readMasterKey(file: string): Promise<Buffer> {
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) {
    throw new ConfigError(`Other users can read ${file}. Restrict it to its owner: chmod 600 ${file}`);
  }
  const key = Buffer.from((await readFile(file, 'utf8')).trim(), 'base64');
  if (key.length !== keyBytes) {
    throw new ConfigError(`${file} does not hold a master key (32 bytes in base64). Restore it from your backup.`);
  }
  return key;
}
