import { HeadObjectCommand } from '@aws-sdk/client-s3';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { inOrder } from '../make/inOrder.ts';
import { fromLines } from '../vault/lines.ts';
import type { Manifest, ObjectEntry } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

const atOnce = 8;

interface Deps {
  vault: Vault;
  storage: ObjectStore;
  /** Whether some may be there from an attempt before. */
  isResumed: boolean;
  signal: AbortSignal;
}

/** Puts all objects back under their keys. */
export async function loadObjects({ objects }: Manifest, { vault, storage, isResumed, signal }: Deps): Promise<void> {
  const put = async (entry: ObjectEntry) => {
    signal.throwIfAborted();
    if (isResumed && (await isThere(storage, entry))) return;
    await storage.write(entry.key, vault.read(entry), {
      fileName: 'object',
      maxBytes: Number.MAX_SAFE_INTEGER,
      reserve: async () => undefined, // it was counted when it was first stored
    });
  };
  async function* tasks() {
    for await (const entry of fromLines<ObjectEntry>(vault.read(objects))) yield () => put(entry);
  }
  for await (const _done of inOrder(tasks(), atOnce)) signal.throwIfAborted();
}

/** It arrives as a whole. What was sent of it in parts before is removed, where it is not. */
async function isThere(storage: ObjectStore, { key, bytes }: ObjectEntry): Promise<boolean> {
  const found = await storage.client
    .send(new HeadObjectCommand({ Bucket: storage.bucket, Key: key }))
    .catch((error: { name?: string }) => {
      if (error.name !== 'NotFound') throw error;
    });
  if (found?.ContentLength === bytes) return true;
  await storage.remove([key], { alsoParts: true });
  return false;
}
