import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { link, mkdir, open, rename, rm, stat } from 'node:fs/promises';

/**
 * Writes that survive a loss of power. A file is written under another name, synced and renamed, so its name always
 * refers to all of the old bytes or all of the new ones. Then its folder is synced, since that holds the name.
 */
interface FileOptions {
  /** Default: only the owner can read the file. */
  mode?: number;
}

/** Part of the name of a file that is being written. */
export const unfinished = '.new-';

/** Writes a file, replacing any existing one. */
export async function writeDurably(file: string, data: string | Uint8Array, options: FileOptions = {}): Promise<void> {
  await throughDraft(file, data, options, async (draft) => {
    await rename(draft, file);
    return true;
  });
}

/** Writes a file unless it exists. Of several concurrent callers, one makes it. Returns whether this caller did. */
export function createDurably(file: string, data: string | Uint8Array, options: FileOptions = {}): Promise<boolean> {
  return throughDraft(file, data, options, async (draft) => {
    const isMade = await link(draft, file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        return false;
      },
    );
    await rm(draft);
    return isMade;
  });
}

async function throughDraft(
  file: string,
  data: string | Uint8Array,
  { mode = 0o600 }: FileOptions,
  name: (draft: string) => Promise<boolean>,
): Promise<boolean> {
  const draft = draftOf(file);
  try {
    const handle = await open(draft, 'wx', mode);
    try {
      await handle.writeFile(data);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const isNamed = await name(draft);
    await syncFolder(folderOf(file));
    return isNamed;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Makes a folder and its missing parents. */
export async function makeFolderDurably(path: string | Buffer, mode = 0o777): Promise<void> {
  try {
    await makeLevel(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await makeFolderDurably(folderOf(path), mode);
    // Once only: some file systems, such as /proc, say ENOENT where the parent exists.
    await makeLevel(path, mode);
  }
}

async function makeLevel(path: string | Buffer, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    throw error;
  }
  await syncFolder(folderOf(path));
}

/** Syncs the names in a folder to disk. */
export async function syncFolder(folder: string | Buffer): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!cannotBeSynced(error)) throw error;
  }
}

/**
 * Reasons why a folder cannot be synced. It can be written but not read, so it cannot be opened. It was removed
 * meanwhile, with everything in it. Or its file system does not sync folders.
 */
function cannotBeSynced(error: unknown): boolean {
  return ['EACCES', 'ENOENT', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** Like `writeDurably`, for code that runs before everything else. */
export function writeDurablySync(file: string, data: string | Uint8Array, { mode = 0o600 }: FileOptions = {}): void {
  const draft = draftOf(file);
  try {
    writeFileSync(draft, data, { mode, flag: 'wx' });
    renameDurablySync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Like `createDurably`, for code that runs before everything else. */
export function createDurablySync(
  file: string,
  data: string | Uint8Array,
  { mode = 0o600 }: FileOptions = {},
): boolean {
  const draft = draftOf(file);
  try {
    writeFileSync(draft, data, { mode, flag: 'wx', flush: true });
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(draft, { force: true });
  }
  syncSync(folderOf(file));
  return true;
}

/** Like `makeFolderDurably`, for code that runs before everything else. */
export function makeFolderDurablySync(path: string, mode = 0o777): void {
  try {
    makeLevelSync(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    makeFolderDurablySync(folderOf(path), mode);
    makeLevelSync(path, mode);
  }
}

function makeLevelSync(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && statSync(path).isDirectory()) return;
    throw error;
  }
  syncSync(folderOf(path));
}

/** Syncs a file, or a folder with all its contents, and gives it its final name. */
export function renameDurablySync(from: string, to: string): void {
  syncTree(from);
  renameSync(from, to);
  syncSync(folderOf(to));
}

function syncTree(path: string): void {
  if (statSync(path).isDirectory()) {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory() || entry.isFile()) syncTree(`${path}/${entry.name}`);
    }
  }
  syncSync(path);
}

function syncSync(path: string): void {
  try {
    const descriptor = openSync(path, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (!cannotBeSynced(error)) throw error;
  }
}

/**
 * Uses the global `crypto`: Node loads its cryptography at the first use, and not at all in a program that never draws.
 */
function draftOf(file: string): string {
  return `${file}${unfinished}${Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString('hex')}`;
}

/** The path of the folder that contains this one. */
export function folderOf<P extends string | Buffer>(path: P): P {
  const bytes = Buffer.from(path);
  let end = bytes.length;
  while (end > 1 && bytes[end - 1] === slash) end--;
  const at = bytes.lastIndexOf(slash, end - 1);
  const folder = at < 0 ? Buffer.from('.') : bytes.subarray(0, Math.max(at, 1));
  return (typeof path === 'string' ? folder.toString() : folder) as P;
}

const slash = 0x2f;
