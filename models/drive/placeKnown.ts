import type { Transaction } from 'sequelize';
import { modelsOf, type On } from '../database/bound.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, type Statement } from '../database/sql.ts';
import type { Placed } from './changes.ts';
import { driveContainerId, requireOwner } from './containers.ts';
import type { DriveItem } from './driveItem.ts';
import { type KnownSpot, knownFoldersOf } from './knownFolders.ts';
import { driveModels } from './models.ts';
import { isName, maxDepth, nameKey } from './names.ts';
import { noSpace } from './objectReserve.ts';
import type { ArrivedFile, FileTarget } from './placeFile.ts';
import type { AlsoPlaced } from './uploadSession.ts';
import { indexNewItems, type NewlyIndexed } from './wordIndex.ts';

/** A stored file whose object comes from the reserve, for a spot that is believed to be free. */
export interface KnownFile extends KnownSpot {
  target: FileTarget;
  file: ArrivedFile;
  also: AlsoPlaced | undefined;
  quotaBytes: number;
}

interface Waiting extends KnownFile {
  /** Resolves to undefined if the file must be placed in the usual way. */
  done: PromiseWithResolvers<Placed | undefined>;
}

const maxTogether = 32;
const maxTextBytes = 256 * 1_024;

/**
 * Places new files into known folders. Files that wait for the same folder share one transaction. It begins when the
 * previous one has ended, without a timer, so a lone file does not wait, and many share each commit. If anything is not
 * as remembered (a folder was moved, a name is taken, there is no room), the transaction is undone and each of its
 * files is placed alone, so no file meets another's failure.
 */
class KnownPlacer {
  private readonly waiting = new Map<string, Waiting[]>();

  /** Undefined if nothing was done and the file must be placed in the usual way. */
  place(database: Database, known: KnownFile): Promise<Placed | undefined> {
    const one = { ...known, done: Promise.withResolvers<Placed | undefined>() };
    const { key } = known.folder;
    const before = this.waiting.get(key);
    if (before !== undefined) before.push(one);
    else {
      this.waiting.set(key, [one]);
      void this.run(database, key);
    }
    return one.done.promise;
  }

  private async run(database: Database, key: string): Promise<void> {
    // Files that arrive in the same round of the event loop go together.
    await new Promise((resolve) => setImmediate(resolve));
    const waiting = this.waiting.get(key) ?? [];
    while (waiting.length > 0) await placeGroup(database, takeGroup(waiting));
    this.waiting.delete(key);
  }
}

export const knownPlacerOf = modelsOf(() => new KnownPlacer());

function takeGroup(waiting: Waiting[]): Waiting[] {
  let count = 0;
  for (let bytes = 0; count < Math.min(waiting.length, maxTogether); count++) {
    bytes += waiting[count]?.file.content.size ?? 0;
    if (bytes > maxTextBytes && count > 0) break;
  }
  return waiting.splice(0, count);
}

async function placeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  try {
    const placed = await placeTogether(database, group);
    if (placed !== undefined) {
      for (const [n, { done }] of group.entries()) done.resolve(placed[n]);
    } else if (group.length > 1) {
      for (const one of group) await placeGroup(database, [one]);
    } else {
      for (const { folder, done } of group) {
        knownFoldersOf(database).forget(folder);
        done.resolve(undefined);
      }
    }
  } catch (error) {
    for (const { done } of group) done.reject(error);
  }
}

/** Undefined if nothing was done. */
async function placeTogether(database: Database, group: readonly Waiting[]): Promise<Placed[] | undefined> {
  let isCommitting = false;
  try {
    return await transaction(database, async (tx) => {
      isCommitting = false;
      const placed = await placeAll(group, tx);
      isCommitting = true;
      return placed;
    });
  } catch (error) {
    // The commit's result is unknown.
    if (isCommitting) throw error;
    return undefined;
  }
}

/** Rejects if anything is not as remembered. */
async function placeAll(group: readonly Waiting[], tx: Transaction): Promise<Placed[]> {
  const { target } = firstOf(group);
  if (!group.every(isAllowed)) throw new NotAsKnown();
  const { statement, found } = takingIn(group);
  const { affectedRows, insertId } = await execute(tx, statement.sql, statement.values);
  if (affectedRows !== found) throw new NotAsKnown();
  driveModels(tx).Drive.tookRevision(tx, target.spaceId, insertId);
  if (target.containerId !== driveContainerId) await requireOwner(target, tx);
  const items = await driveModels(tx).DriveItem.insertAll(freshItems(tx, group), tx);
  await indexNewItems(
    items.map((item, n) => wordsOf(group[n], item, item.number)),
    tx,
  );
  const placed = placedIn(group, items);
  for (const [n, { also }] of group.entries()) await also?.(tx, placed.slice(n, n + 1));
  return placed;
}

function firstOf([first]: readonly Waiting[]): Waiting {
  if (first === undefined) throw new Error('There is nothing to place.');
  return first;
}

function isAllowed({ name, folder }: KnownSpot): boolean {
  return folder.place.depth < maxDepth && isName(name);
}

function freshItems(on: On, group: readonly Waiting[]): DriveItem[] {
  const { DriveItem } = driveModels(on);
  return group.map(({ name, folder, target: { userId, spaceId }, file: { content, says } }) =>
    DriveItem.fresh({ spaceId, parentId: folder.place.itself.id, kind: 'file', name, userId, content, says }),
  );
}

function wordsOf(waiting: Waiting | undefined, { name }: DriveItem, itemNumber: NewlyIndexed['itemNumber']) {
  return { driveNumber: waiting?.folder.driveNumber ?? 0, itemNumber, name, text: waiting?.file.text ?? '' };
}

function placedIn(group: readonly Waiting[], items: readonly DriveItem[]): Placed[] {
  const { place } = firstOf(group).folder;
  return items.map((item) => ({ item, place: place.below(item) }));
}

/**
 * One statement that does all of the following or nothing: locks the drive, as every change does, takes its next
 * revision, counts the bytes against the quota, keeps the objects, and counts the files in at their folder. It changes every table that it joins,
 * because only rows it changes are read as they are after the wait for the lock. The exception is the check that the
 * folder is not in an app: this changes when an app is made, and making one looks at the contents afterwards. `found`
 * is how many rows the statement finds, changed or not, if everything is as remembered.
 */
function takingIn(group: readonly Waiting[]): { statement: Statement; found: number } {
  const { folder, target, quotaBytes } = firstOf(group);
  const { spaceId } = target;
  const { chain } = folder.place;
  const last = chain.length - 1;
  const keys = group.map(({ file }) => file.content.objectKey);
  const sizes = group.map(({ file }) => file.content.size);
  const hashes = group.map(({ file }) => file.content.sha256);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const joins = chain.map((_, level) => {
    const parent = level === 0 ? 'd.space_id' : `f${level - 1}.id`;
    return `STRAIGHT_JOIN drive_items f${level} ON f${level}.id = ? AND f${level}.parent_id = ${parent} AND f${level}.name_key = ? AND f${level}.live = 1`;
  });
  const untouched = chain.slice(0, -1).map((_, level) => `f${level}.height = f${level}.height, `);
  const sql = `UPDATE drives d ${joins.join(' ')}
    STRAIGHT_JOIN drive_objects o ON o.object_key IN (?) AND o.state = 'arriving' AND o.space_id = ?
    SET d.revision = LAST_INSERT_ID(d.revision + 1), d.used_bytes = d.used_bytes + ?, ${untouched.join('')}f${last}.child_count = f${last}.child_count + ?,
      o.state = 'kept', o.is_complete = 1, o.lease_expires_at = NULL, o.space_id = ?,
      o.size = ELT(FIELD(o.object_key, ?), ?), o.sha256 = ELT(FIELD(o.object_key, ?), ?), o.kept_at = ?
    WHERE d.space_id = ? AND f${last}.height > 0 AND (? = 0 OR d.used_bytes + ? <= ?)
      AND NOT EXISTS (SELECT 1 FROM apps a WHERE a.item_id IN (?) AND a.live = 1)`;
  const values = [
    ...chain.flatMap(({ id, name }) => [id, nameKey(name)]),
    ...[keys, noSpace, bytes, keys.length, spaceId, keys, sizes, keys, hashes, new Date(), spaceId],
    ...[quotaBytes, bytes, quotaBytes, chain.map(({ id }) => id)],
  ];
  return { statement: { sql, values }, found: 1 + chain.length + keys.length };
}

/** The tree differs from what was remembered of the folder. */
class NotAsKnown extends Error {}
