import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../config/index.ts';
import { keyBytes } from './aead.ts';

/** The file's name in the data directory. */
export const masterKeyFileName = 'master.key';

/**
 * Reads the master key of the data directory, and makes it at the first start: 32 random bytes in base64, readable by
 * its owner only. Whoever loses this file loses every secret, so it is synced to the disk before it is used.
 */
export async function readOrCreateMasterKey(dataDir: string): Promise<Buffer> {
  const file = path.join(dataDir, masterKeyFileName);
  try {
    return await readMasterKey(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await mkdir(dataDir, { recursive: true });
  await createMasterKey(dataDir, file);
  return readMasterKey(file);
}

/**
 * Written under a name of its own and then linked, so that of several processes at their first start one wins and none
 * ever reads half a key.
 */
async function createMasterKey(dataDir: string, file: string): Promise<void> {
  const temporary = `${file}.${randomBytes(8).toString('hex')}`;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    await handle.writeFile(`${randomBytes(keyBytes).toString('base64')}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await unlink(temporary);
  }
  const directory = await open(dataDir, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function readMasterKey(file: string): Promise<Buffer> {
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0) {
    throw new ConfigError(`${file} can be read by others. Make it yours alone: chmod 600 ${file}`);
  }
  const key = Buffer.from((await readFile(file, 'utf8')).trim(), 'base64');
  if (key.length !== keyBytes) {
    throw new ConfigError(`${file} does not hold a master key (32 bytes in base64). Restore it from your backup.`);
  }
  return key;
}
