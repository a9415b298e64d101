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
/** Of the objects that are missing, so many are named; all are counted. */
const mostNamed = 1_000;

interface Deps {
  vault: Vault;
  database: Database;
  storage: Pick<ObjectStore, 'read'>;
  /** The backup before, whose objects are not read again: an object never changes under its key. */
  before: NamedManifest | undefined;
  pace: Pace;
  signal: AbortSignal;
}

/** What was stored of the bucket. */
export interface StoredObjects {
  content: Stored;
  count: number;
  bytes: number;
  missing: Manifest['missing'];
}

/** An entry of the list, and whether it was copied now. Without one the store does not have the object as it was stored. */
interface Copied {
  object: BackedUpObject;
  entry: ObjectEntry | undefined;
  isNew: boolean;
}

/**
 * The objects that rows name. What an attempt before this one has copied is not copied again. One that the store has lost,
 * or that is damaged, is told, and holds up no other; one that is on its way, or has been given up, is named by no row of the backup.
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

/** With the row that names each. */
async function named(database: Database, lost: readonly BackedUpObject[]): Promise<Manifest['missing']['named']> {
  const keys = lost.map(({ key }) => key);
  const owners = new Map((await ownersOf(database, keys)).map(({ key, owner }) => [key, owner]));
  return lost.map(({ key, spaceId }) => ({ key, spaceId, owner: owners.get(key) ?? 'no row any more' }));
}
