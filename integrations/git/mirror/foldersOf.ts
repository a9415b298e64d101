import { readdir } from 'node:fs/promises';

/** The items of which this machine has anything. */
export const foldersOf = (dir: string): Promise<string[]> => itemsIn(dir, /^(itm_\w+)$/);

/** The same, and those of which it has no more than the lock of a folder that is gone. */
export const foldersAndLocksOf = (dir: string): Promise<string[]> => itemsIn(dir, /^(itm_\w+?)(?:\.lock)?$/);

async function itemsIn(dir: string, pattern: RegExp): Promise<string[]> {
  try {
    return [...new Set((await readdir(dir)).flatMap((name) => pattern.exec(name)?.[1] ?? []))];
  } catch (error) {
    // Nothing was ever cloned here.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
