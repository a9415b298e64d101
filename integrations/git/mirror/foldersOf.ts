import { readdir } from 'node:fs/promises';

/** The items of which this machine has anything. */
export async function foldersOf(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir)).filter((name) => /^itm_\w+$/.test(name));
  } catch (error) {
    // Nothing was ever cloned here.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
