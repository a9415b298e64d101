import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MirrorSweep, RepositoryRef } from '../types.ts';
import { type FolderDeps, MirrorFolder } from './folder.ts';
import { foldersAndLocksOf } from './foldersOf.ts';
import { namesIn } from './repository.ts';
import type { MirrorRoom } from './room.ts';

const namesAtOnce = 200;
/** A clone that has failed, and that nobody has gone on with for so long, begins anew. */
const partialAgeMs = 7 * 86_400_000;

/**
 * Removes what this machine has of repositories that are gone, and of others what is of no use any more. A folder in
 * which somebody works is left to a later sweep, and so is one that cannot be removed. Answers how many are gone.
 */
export async function sweepFolders(deps: FolderDeps, room: MirrorRoom, sweep: MirrorSweep): Promise<number> {
  const names = await foldersAndLocksOf(deps.config.dir);
  let removed = 0;
  for (let from = 0; from < names.length; from += namesAtOnce) {
    const some = names.slice(from, from + namesAtOnce);
    const known = await sweep.known(some);
    for (const itemId of some) {
      sweep.signal.throwIfAborted();
      const ref = { itemId, spaceId: '' };
      try {
        if (known.has(itemId)) await tidyFolder(deps, ref, sweep.signal);
        else if (await removeFolder(deps, ref, sweep.signal)) removed += 1;
      } catch (error) {
        sweep.signal.throwIfAborted();
        sweep.onFailure(itemId, error);
      }
    }
  }
  // So that an operation seldom has to make room for itself.
  if (names.length > 0) await room.make(deps.config.minFreeBytes * 2, sweep.signal);
  return removed;
}

/** False while somebody works in it. */
async function removeFolder(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<boolean> {
  await using folder = await MirrorFolder.tryLock(deps, ref, signal);
  await folder?.remove();
  return folder !== undefined;
}

async function tidyFolder(deps: FolderDeps, ref: RepositoryRef, signal: AbortSignal): Promise<void> {
  const root = MirrorFolder.pathOf(deps.config, ref);
  const hasPartial = (await stat(join(root, 'partial.git')).catch(() => undefined)) !== undefined;
  if (!hasPartial && (await namesIn(join(root, 'bundles'))).length === 0) return;
  await using folder = await MirrorFolder.tryLock(deps, ref, signal);
  if (folder === undefined) return;
  await folder.removeOldBundles();
  // Another machine may have cloned it meanwhile.
  const isOfNoUse =
    (await deps.records.current(ref)) !== undefined || Date.now() - (await folder.usedAtMs()) > partialAgeMs;
  if (hasPartial && isOfNoUse) await folder.discardPartial();
}
