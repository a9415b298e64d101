import { HeadObjectCommand } from '@aws-sdk/client-s3';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { BackupError } from '../errors.ts';
import { inOrder } from '../make/inOrder.ts';
import { objectWeight, type Pace } from '../pace.ts';
import { fromLines } from '../vault/lines.ts';
import type { Manifest, ObjectEntry } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

const atOnce = 8;

interface Deps {
  vault: Vault;
  storage: ObjectStore;
  /** Whether an earlier attempt may have stored some objects. */
  isResumed: boolean;
  pace: Pace;
  signal: AbortSignal;
}

export async function loadObjects(
  { objects, objectBytes, objectCount }: Pick<Manifest, 'objects' | 'objectBytes' | 'objectCount'>,
  { vault, storage, isResumed, pace, signal }: Deps,
): Promise<void> {
  const put = async (entry: ObjectEntry) => {
    signal.throwIfAborted();
    if (isResumed && (await isThere(storage, entry))) return;
    const options = {
      fileName: 'object',
      maxBytes: Number.MAX_SAFE_INTEGER,
      reserve: async () => undefined, // counted when it was first stored
    };
    await storage.write(entry.key, vault.read(entry), options).catch((error: Error) => {
      // The store wraps errors of its source. Here the source is the backup, whose own error says what is missing.
      throw error.cause instanceof BackupError ? error.cause : error;
    });
  };
  async function* tasks() {
    for await (const entry of fromLines<ObjectEntry>(vault.read(objects)))
      yield () => put(entry).then(() => pace.add(entry.bytes + objectWeight));
  }
  pace.begin('Objects of the bucket', objectBytes + objectCount * objectWeight);
  for await (const _done of inOrder(tasks(), atOnce)) signal.throwIfAborted();
  pace.end();
}

/** Whether the object is there. It appears only as a whole. If it is absent, removes parts of an earlier upload. */
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
