import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Git } from './git.ts';
import type { TrimmedPack } from './packTrim.ts';
import { namesIn } from './repository.ts';

/** How long it may be looked for where a pack's objects end, and how much later its thread is ended in any case. */
const defaultLimits = { lookMs: 300_000, graceMs: 60_000 };
const maxHeapMib = 64;

/**
 * Makes packs of what arrived before a transfer was cut: a pack's beginning is whole objects, and a delta comes after
 * what it is made from. Returns how many objects that are. They may refer to what is not there, so they count as of a
 * partial clone. What cannot be used is removed.
 */
export async function salvagePacks(git: Git, limits = defaultLimits): Promise<number> {
  const packs = join(git.dir, 'objects', 'pack');
  let objects = 0;
  for (const name of await namesIn(packs)) {
    if (!name.startsWith('tmp_pack_')) continue;
    const path = join(packs, name);
    const trimmed = await trimInThread(path, limits, git.signal);
    if (trimmed === undefined) {
      await rm(path, { force: true });
      continue;
    }
    const base = join(packs, `pack-${trimmed.checksum}`);
    await rename(path, `${base}.pack`);
    const indexed = await git.run(['index-pack', '--promisor', `${base}.pack`]);
    if (indexed.code === 0) objects += trimmed.objects;
    else for (const ending of ['pack', 'idx', 'rev', 'promisor']) await rm(`${base}.${ending}`, { force: true });
  }
  return objects;
}

/** Inflating gigabytes, as a stranger has made them, would hold up everything else that this process does. */
async function trimInThread(
  path: string,
  { lookMs, graceMs }: typeof defaultLimits,
  signal: AbortSignal,
): Promise<TrimmedPack | undefined> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./trimWorker.ts', import.meta.url), {
    workerData: { path, lookMs },
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMib },
    env: {},
    execArgv: [],
  });
  const end = Promise.withResolvers<TrimmedPack | undefined>();
  // A thread that fails, or has used up its memory, has found nothing that can be used.
  worker.once('message', end.resolve).once('error', () => end.resolve(undefined));
  worker.once('exit', () => end.resolve(undefined));
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
    // Nobody else may touch the file before it has ended.
    await worker.terminate();
  }
}
