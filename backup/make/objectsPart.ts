import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { Database } from '../../models/database.ts';
import { type BackedUpObject, objectsForBackup } from '../../models/drive/objectsForBackup.ts';
import { DomainError } from '../../models/errors.ts';
import { BackupError } from '../errors.ts';
import { fromLines, toLines } from '../vault/lines.ts';
import type { NamedManifest, ObjectEntry } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { inOrder } from './inOrder.ts';
import { Progress } from './progress.ts';

const atOnce = 8;

interface Deps {
  vault: Vault;
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
  /** The backup before, whose objects are not read again: an object never changes under its key. */
  before: NamedManifest | undefined;
  signal: AbortSignal;
}

/** What was stored of the bucket. */
export interface StoredObjects {
  content: Stored;
  count: number;
  bytes: number;
  /** How many the store does not have, though rows name them. */
  missing: number;
}

/** The objects that rows name. What an attempt before this one has copied is not copied again. */
export async function storeObjects(deps: Deps): Promise<StoredObjects> {
  const { vault, database, signal } = deps;
  const progress = await Progress.open(vault);
  const known = new Lookup(deps.before && fromLines<ObjectEntry>(vault.read(deps.before.objects)));
  const sums = { count: 0, bytes: 0, missing: 0 };

  async function entryOf(object: BackedUpObject, found: ObjectEntry | undefined): Promise<ObjectEntry | undefined> {
    signal.throwIfAborted();
    for (const one of [found, progress.find(object.key)]) {
      if (one !== undefined && (await vault.has(one))) return one;
    }
    const stored = await vault.store(await deps.storage.read(object.key)).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'CONTENT_MISSING') throw error;
    });
    if (stored !== undefined) return progress.note({ key: object.key, ...stored });
    if (!object.isDoomed) sums.missing += 1;
    return undefined;
  }

  async function* tasks() {
    for await (const object of objectsForBackup(database)) {
      const found = await known.find(object.key);
      yield () => entryOf(object, found);
    }
  }

  async function* entries(): AsyncGenerator<ObjectEntry> {
    for await (const entry of inOrder(tasks(), atOnce)) {
      if (entry === undefined) continue;
      sums.count += 1;
      sums.bytes += entry.bytes;
      yield entry;
    }
  }

  return { content: await vault.store(toLines(entries())), ...sums };
}

/**
 * Finds entries that come by key, asked for by key: none is kept in memory but the next. Where a list is damaged, nothing
 * more is found in it.
 */
class Lookup {
  private entries: AsyncGenerator<ObjectEntry> | undefined;
  private next: ObjectEntry | undefined;

  constructor(entries: AsyncGenerator<ObjectEntry> | undefined) {
    this.entries = entries;
  }

  async find(key: string): Promise<ObjectEntry | undefined> {
    while (this.entries !== undefined && (this.next === undefined || this.next.key < key)) {
      const { done, value } = await this.entries.next().catch(ended);
      if (done === true) this.entries = undefined;
      this.next = value;
    }
    return this.next?.key === key ? this.next : undefined;
  }
}

function ended(error: unknown): IteratorResult<ObjectEntry, undefined> {
  if (!(error instanceof BackupError)) throw error;
  return { done: true, value: undefined };
}
