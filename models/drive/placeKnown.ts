import type { Transaction } from 'sequelize';
import { modelsOf } from '../bound.ts';
import { type Database, transaction } from '../database.ts';
import { execute } from '../sql.ts';
import type { Placed } from './changes.ts';
import { driveContainerId, requireOwner } from './containers.ts';
import type { Content } from './driveItem.ts';
import { type KnownFolder, type KnownSpot, knownFoldersOf } from './knownFolders.ts';
import { driveModels } from './models.ts';
import { checkName, maxDepth, nameKey } from './names.ts';
import { noSpace } from './objectReserve.ts';
import type { ArrivedFile, FileTarget } from './placeFile.ts';
import type { AlsoPlaced } from './uploadSession.ts';
import { indexNewItems } from './wordIndex.ts';

/** A stored file whose object is one of the reserve, for a spot that is believed to be free. */
export interface KnownFile extends KnownSpot {
  target: FileTarget;
  file: ArrivedFile;
  also: AlsoPlaced | undefined;
  quotaBytes: number;
}

interface Waiting extends KnownFile {
  /** Undefined where the file has to be placed in the usual way. */
  done: PromiseWithResolvers<Placed | undefined>;
}

const maxTogether = 32;
const maxTextBytes = 256 * 1_024;

/**
 * Places new files into known folders. What waits for the same folder shares one transaction: it begins when the one
 * before it has ended, with no timer, so that a lone file does not wait, and many share each commit. Whatever is not as
 * it was believed to be (a folder was moved, a name is taken, there is no room) undoes it, and each of its files is
 * placed alone: none meets another's failure.
 */
class KnownPlacer {
  private readonly waiting = new Map<string, Waiting[]>();

  /** Undefined where nothing was done, and the file has to be placed in the usual way. */
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
    // What came with one turn of the event loop goes together.
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
  let isCommitting = false;
  try {
    const placed = await transaction(database, async (tx) => {
      isCommitting = false;
      const done = await placeAll(group, tx);
      isCommitting = true;
      return done;
    });
    for (const [n, { done }] of group.entries()) done.resolve(placed[n]);
  } catch (error) {
    if (isCommitting) {
      // Nobody knows whether it was done.
      for (const { done } of group) done.reject(error);
    } else if (group.length > 1) {
      for (const one of group) await placeGroup(database, [one]);
    } else {
      for (const { folder, done } of group) {
        knownFoldersOf(database).forget(folder);
        done.resolve(undefined);
      }
    }
  }
}

/** Rejects where anything is not as it was believed to be. */
async function placeAll(group: readonly Waiting[], tx: Transaction): Promise<Placed[]> {
  const [first] = group;
  if (first === undefined) return [];
  const { folder, target, quotaBytes } = first;
  const { driveNumber, place } = folder;
  if (place.depth + 1 > maxDepth) throw new NotAsKnown();
  for (const { name } of group) checkName(name);
  const contents = group.map(({ file }) => file.content);
  await takeIn(folder, { spaceId: target.spaceId, contents, quotaBytes }, tx);
  if (target.containerId !== driveContainerId) await requireOwner(target, tx);
  const items = await driveModels(tx).DriveItem.makeAll(
    group.map(({ name, target: { userId, spaceId }, file }) => ({
      spaceId,
      parentId: place.itself.id,
      kind: 'file',
      name,
      userId,
      content: file.content,
    })),
    tx,
  );
  const placed = items.map((item) => ({ item, place: place.below(item) }));
  const words = items.map(({ number, name }, n) => {
    return { driveNumber, itemNumber: number, name, text: group[n]?.file.text ?? '' };
  });
  await indexNewItems(words, tx);
  for (const [n, { also }] of group.entries()) await also?.(tx, placed.slice(n, n + 1));
  return placed;
}

/**
 * Locks the drive, as every change does, counts the bytes against the quota, keeps the objects, and counts the files in
 * at their folder: one statement, which does all of it or nothing. Each table in it is one that it changes, since only
 * their rows are read as they are after the wait for the lock.
 */
async function takeIn(
  { place }: KnownFolder,
  { spaceId, contents, quotaBytes }: { spaceId: string; contents: readonly Content[]; quotaBytes: number },
  tx: Transaction,
): Promise<void> {
  const { chain } = place;
  const last = chain.length - 1;
  const bytes = contents.reduce((sum, { size }) => sum + size, 0);
  const keys = contents.map(({ objectKey }) => objectKey);
  const sizes = contents.map(({ size }) => size);
  const joins = chain.map((_, level) => {
    const parent = level === 0 ? 'd.space_id' : `f${level - 1}.id`;
    return `STRAIGHT_JOIN drive_items f${level} ON f${level}.id = ? AND f${level}.parent_id = ${parent} AND f${level}.name_key = ? AND f${level}.live = 1`;
  });
  const untouched = chain.slice(0, -1).map((_, level) => `f${level}.height = f${level}.height, `);
  const { affectedRows } = await execute(
    tx,
    `UPDATE drives d ${joins.join(' ')}
      STRAIGHT_JOIN drive_objects o ON o.object_key IN (?) AND o.state = 'arriving' AND o.space_id = ?
      SET d.used_bytes = d.used_bytes + ?, ${untouched.join('')}f${last}.child_count = f${last}.child_count + ?,
        o.state = 'kept', o.is_complete = 1, o.lease_expires_at = NULL, o.space_id = ?,
        o.size = ELT(FIELD(o.object_key, ?), ?)
      WHERE d.space_id = ? AND f${last}.height > 0 AND (? = 0 OR d.used_bytes + ? <= ?)`,
    [
      ...chain.flatMap(({ id, name }) => [id, nameKey(name)]),
      keys,
      noSpace,
      bytes,
      keys.length,
      spaceId,
      keys,
      sizes,
      spaceId,
      ...[quotaBytes, bytes, quotaBytes],
    ],
  );
  // Counted are rows that were found, changed or not.
  if (affectedRows !== 1 + chain.length + keys.length) throw new NotAsKnown();
}

/** Something is not as it was when the folder was remembered. */
class NotAsKnown extends Error {}
