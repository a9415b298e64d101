import { damageOf } from '../../integrations/storage/checkedContent.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { Database } from '../../models/database/database.ts';
import { ownersOf } from '../../models/drive/objectOwners.ts';
import { type BackedUpObject, countObjectsForBackup, objectsForBackup } from '../../models/drive/objectsForBackup.ts';
import { objectWeight, type Pace } from '../pace.ts';
import { fromLines, toLines } from '../vault/lines.ts';
import type { Manifest, NamedManifest, ObjectEntry } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { inOrder } from './inOrder.ts';
import { Progress } from './progress.ts';
import { SortedEntries } from './sortedEntries.ts';

const atOnce = 8;
/** All missing objects are counted, but only this many are named. */
const mostNamed = 1_000;

interface Deps {
  vault: Vault;
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
  /** The previous backup. Its objects are not read again, since an object never changes under its key. */
  before: NamedManifest | undefined;
  pace: Pace;
  signal: AbortSignal;
}

/** The objects stored from the bucket. */
export interface StoredObjects {
  content: Stored;
  count: number;
  bytes: number;
  missing: Manifest['missing'];
}

/**
 * An object's entry in the list, and whether it was copied now. The entry is undefined if the store does not have the
 * object as it was stored.
 */
interface Copied {
  object: BackedUpObject;
  entry: ObjectEntry | undefined;
  isNew: boolean;
}

/**
 * Stores the objects that rows name. Reuses what an earlier attempt copied. A lost or damaged object is reported and
 * does not stop the others. No row of the backup names an unfinished or abandoned upload.
 */
export async function storeObjects(deps: Deps): Promise<StoredObjects> {
  const { vault, database, pace, signal } = deps;
  const progress = await Progress.open(vault);
  const known = new SortedEntries(deps.before && fromLines<ObjectEntry>(vault.read(deps.before.objects)));
  const sums = { count: 0, bytes: 0 };
  const lost: BackedUpObject[] = [];
  let lostCount = 0;

  async function copy(object: BackedUpObject, found: (ObjectEntry | undefined)[]): Promise<Copied> {
    signal.throwIfAborted();
    for (const entry of found) {
      if (entry !== undefined && (await vault.has(entry))) return { object, entry, isNew: false };
    }
    try {
      const stored = await vault.store(await deps.storage.read(object.key));
      return { object, entry: { key: object.key, ...stored }, isNew: true };
    } catch (error) {
      if (damageOf(error) === undefined) throw error;
      return { object, entry: undefined, isNew: false };
    }
  }

  async function* tasks() {
    for await (const object of objectsForBackup(database)) {
      const found = [await known.find(object.key), await progress.find(object.key)];
      yield () => copy(object, found);
    }
  }

  async function* entries(): AsyncGenerator<ObjectEntry> {
    for await (const { object, entry, isNew } of inOrder(tasks(), atOnce)) {
      pace.add(object.bytes + objectWeight);
      if (entry !== undefined) {
        sums.count += 1;
        sums.bytes += entry.bytes;
        if (isNew) await progress.note(entry);
        yield entry;
      } else if (!object.isDoomed) {
        lostCount += 1;
        if (lost.length < mostNamed) lost.push(object);
      }
    }
  }

  const all = await countObjectsForBackup(database);
  pace.begin('Objects of the bucket', all.bytes + all.count * objectWeight);
  const content = await vault.store(toLines(entries()));
  pace.end();
  return { content, ...sums, missing: { count: lostCount, named: await named(database, lost) } };
}

/** Adds the row that names each object. */
async function named(database: Database, lost: readonly BackedUpObject[]): Promise<Manifest['missing']['named']> {
  const keys = lost.map(({ key }) => key);
  const owners = new Map((await ownersOf(database, keys)).map(({ key, owner }) => [key, owner]));
  return lost.map(({ key, spaceId }) => ({ key, spaceId, owner: owners.get(key) ?? 'no row any more' }));
}
