import { readdir } from 'node:fs/promises';
import type { MirrorSweep, RepositoryRef } from '../types.ts';
import { type FolderDeps, MirrorFolder } from './folder.ts';

const namesAtOnce = 200;

/**
 * Removes what this machine has of repositories that are gone. A folder in which somebody works is left to a later
 * sweep, and so is one that cannot be removed. Answers how many are gone.
 */
export async function sweepFolders(deps: FolderDeps, sweep: MirrorSweep): Promise<number> {
  const names = (await namesOf(deps.config.dir)).filter((name) => /^itm_\w+$/.test(name));
  let removed = 0;
  for (let from = 0; from < names.length; from += namesAtOnce) {
    const some = names.slice(from, from + namesAtOnce);
    const known = await sweep.known(some);
    for (const itemId of some.filter((name) => !known.has(name))) {
      sweep.signal.throwIfAborted();
      try {
        if (await removeFolder(deps, { itemId, spaceId: '' }, sweep.signal)) removed += 1;
      } catch (error) {
        sweep.signal.throwIfAborted();
        sweep.onFailure(itemId, error);
      }
    }
  }
  return removed;
}

/** False while somebody works in it. */
async function removeFolder(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<boolean> {
  await using folder = await MirrorFolder.tryLock(deps, ref, signal);
  await folder?.remove();
  return folder !== undefined;
}

async function namesOf(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    // Nothing was ever cloned here.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
