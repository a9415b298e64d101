import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { BackupError } from '../errors.ts';
import type { Place } from './place.ts';

/** What is being written has this in its name. */
const unfinished = '.new-';

/** A folder, such as one on another disk or another machine. */
export function folderPlace(path: string): Place {
  const root = resolve(path);
  const at = (name: string) => join(root, name);
  return {
    title: root,
    exists: async () => (await told(root, stat(root).catch(absent))) !== undefined,
    list: (prefix) => namesBelow(root, prefix),
    read: (name) => told(root, readFile(at(name)).catch(absent)),
    async write(name, bytes) {
      const draft = `${at(name)}${unfinished}${randomBytes(4).toString('hex')}`;
      await told(root, writeWhole(draft, at(name), bytes));
    },
    async remove(names) {
      for (const name of names) await told(root, rm(at(name), { force: true }));
    },
    close: () => undefined,
  };
}

async function writeWhole(draft: string, file: string, bytes: Buffer): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  const folder = await open(dirname(file), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function* namesBelow(root: string, prefix: string): AsyncGenerator<string> {
  const cut = prefix.lastIndexOf('/') + 1;
  const [folder, begin] = [prefix.slice(0, cut), prefix.slice(cut)];
  const entries = (await told(root, readdir(join(root, folder), { withFileTypes: true }).catch(absent))) ?? [];
  for (const entry of entries) {
    if (!entry.name.startsWith(begin) || entry.name.includes(unfinished)) continue;
    const name = `${folder}${entry.name}`;
    if (entry.isDirectory()) yield* namesBelow(root, `${name}/`);
    else yield name;
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** A failure of the disk, with the folder. */
async function told<T>(root: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOSPC' ? 'the disk is full' : message;
    throw new BackupError(`The folder for backups ${root} cannot be used: ${reason}.`, { cause: error });
  }
}
