import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { namesIn, packFolder, removePacks } from '../mirror/repository.ts';
import type { Git } from '../process/git.ts';
import type { TrimJob, TrimmedPack } from './packTrim.ts';

/** How long a thread may search a pack for whole objects, and how much later the thread is terminated. */
const defaultLimits = { lookMs: 300_000, graceMs: 60_000 };
const maxHeapMib = 64;

/**
 * Makes valid packs of the packs of a broken transfer, and returns the number of their objects. A pack begins with
 * whole objects, and a delta comes after its base. The objects may refer to missing ones, so the packs are marked as
 * packs of a partial clone. Unusable packs are removed.
 */
export async function salvagePacks(git: Git, limits = defaultLimits): Promise<number> {
  const packs = packFolder(git);
  let objects = 0;
  for (const name of await namesIn(packs)) {
    if (!name.startsWith('tmp_pack_')) continue;
    const path = join(packs, name);
    const trimmed = await trimInThread(path, limits, git.signal);
    if (trimmed === undefined) {
      await rm(path, { force: true });
      continue;
    }
    const pack = `pack-${trimmed.checksum}`;
    await rename(path, join(packs, `${pack}.pack`));
    const indexed = await git.run(['index-pack', '--promisor', join(packs, `${pack}.pack`)]);
    if (indexed.code === 0) objects += trimmed.objects;
    else await removePacks(git, [pack]);
  }
  return objects;
}

/** Runs in a thread, because the pack is untrusted: inflating gigabytes of it here would block this process. */
async function trimInThread(
  path: string,
  { lookMs, graceMs }: typeof defaultLimits,
  signal: AbortSignal,
): Promise<TrimmedPack | undefined> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./packTrim.ts', import.meta.url), {
    workerData: { path, lookMs } satisfies TrimJob,
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMib },
    env: {},
    execArgv: [],
  });
  const end = Promise.withResolvers<TrimmedPack | undefined>();
  // A thread that fails or runs out of memory has found nothing usable.
  const giveUp = () => end.resolve(undefined);
  worker.once('message', end.resolve).once('error', giveUp).once('exit', giveUp);
  const stop = () => void worker.terminate();
  const timer = setTimeout(stop, lookMs + graceMs);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const trimmed = await end.promise;
    signal.throwIfAborted();
    return trimmed;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    // The thread must end before anything else touches the file.
    await worker.terminate();
  }
}
