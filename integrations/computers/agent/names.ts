import { syncFolder } from '../../../disk/durable.ts';

/** The next sync of each folder that is being synced: one for all that wait for it. */
const nextOf = new Map<string, Promise<void>>();
const currentOf = new Map<string, Promise<void>>();

/**
 * Puts on the disk which names a folder has. A sync covers whatever was done before it began, so all who come while one
 * runs share the next: a hundred small files cost a few.
 */
export function syncNames(folder: Buffer): Promise<void> {
  const key = folder.toString('latin1');
  const next = nextOf.get(key) ?? syncAfter(currentOf.get(key), { key, folder });
  nextOf.set(key, next);
  return next;
}

async function syncAfter(
  current: Promise<void> | undefined,
  { key, folder }: { key: string; folder: Buffer },
): Promise<void> {
  await current?.catch(() => undefined);
  const own = nextOf.get(key);
  nextOf.delete(key);
  if (own !== undefined) currentOf.set(key, own);
  try {
    await syncFolder(folder);
  } catch (error) {
    // It is gone with all that was in it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  } finally {
    if (currentOf.get(key) === own) currentOf.delete(key);
  }
}
