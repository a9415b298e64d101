import { Op } from 'sequelize';
import { type Database, transaction } from '../database.ts';
import { openTrashed } from './changes.ts';
import { Drive } from './drive.ts';
import { DriveItem } from './driveItem.ts';
import { DriveObject } from './driveObject.ts';
import { DriveUpload } from './driveUpload.ts';
import { DriveVersion } from './driveVersion.ts';

const itemsPerBatch = 500;
/** Marked at once when a trash is emptied. */
const marksPerBatch = 1_000;

/** Takes an item of the trash out of everybody's sight. From here on it cannot be brought back, and nothing gets below it. */
export async function markForPurge(database: Database, spaceId: string, itemId: string): Promise<void> {
  await transaction(database, async (tx) => {
    await Drive.lock(spaceId, tx);
    const item = await openTrashed(spaceId, itemId, tx);
    await item.update({ purgingAt: new Date() }, { transaction: tx });
  });
}

/** The same for all that is in a space's trash, up to now. */
export async function markTrash(database: Database, spaceId: string): Promise<void> {
  const trashedAt = { [Op.lte]: new Date() };
  let marked = marksPerBatch;
  while (marked === marksPerBatch) {
    marked = await transaction(database, async (tx) => {
      await Drive.lock(spaceId, tx);
      const where = { spaceId, trashedAt, purgingAt: null };
      const [count] = await DriveItem.update(
        { purgingAt: new Date() },
        { where, limit: marksPerBatch, transaction: tx },
      );
      return count;
    });
  }
}

/** Marks what has been in a trash since before `before`; returns how many items that were. */
export async function markOldTrash(database: Database, before: Date): Promise<number> {
  const old = await DriveItem.findAll({
    where: { trashedAt: { [Op.lt]: before }, purgingAt: null },
    limit: marksPerBatch,
  });
  for (const { spaceId, id } of old) {
    await markForPurge(database, spaceId, id).catch(ignoreGone);
  }
  return old.length;
}

/** Somebody has restored or purged it meanwhile. */
function ignoreGone(error: unknown): void {
  const { code } = error as { code?: string };
  if (code !== 'NOT_FOUND' && code !== 'NOT_IN_TRASH') throw error;
}

/** What is marked, of one space or of all, a few at a time. */
export async function markedItems(limit: number, spaceId?: string): Promise<DriveItem[]> {
  return DriveItem.findAll({
    where: { purgingAt: { [Op.ne]: null }, ...(spaceId === undefined ? {} : { spaceId }) },
    limit,
  });
}

/**
 * Removes an item and all that is below it, deepest first and a batch at a time, so that a crash leaves a smaller tree and no orphan.
 * Objects are only doomed here; removing them from the store is the next step.
 */
export async function purgeSubtree(database: Database, top: DriveItem, onBatch: () => void): Promise<void> {
  const open = [top];
  for (let item = open.at(-1); item !== undefined; item = open.at(-1)) {
    // Also what was put into the trash by itself before: its parent goes now.
    const children = await DriveItem.findAll({ where: { parentId: item.id }, limit: itemsPerBatch });
    const files = children.filter(({ isFile }) => isFile);
    const others = children.filter(({ isFile }) => !isFile);
    if (files.length > 0) await removeItems(database, files);
    open.push(...others);
    if (children.length === 0) {
      await removeItems(database, [item]);
      open.pop();
    }
    onBatch();
  }
}

async function removeItems(database: Database, items: DriveItem[]): Promise<void> {
  const ids = items.map(({ id }) => id);
  const numbers = items.map(({ number }) => number);
  await transaction(database, async (tx) => {
    const versions = await DriveVersion.findAll({ where: { itemId: ids }, transaction: tx });
    const keys = [...items, ...versions].flatMap(({ objectKey }) => (objectKey === null ? [] : [objectKey]));
    await DriveObject.doom(keys, tx);
    await DriveVersion.destroy({ where: { itemId: ids }, transaction: tx });
    await database.sequelize.query('DELETE FROM drive_words WHERE item_number IN (?)', {
      replacements: [numbers],
      transaction: tx,
    });
    await DriveItem.destroy({ where: { number: numbers }, transaction: tx });
  });
}

/**
 * Removes the files of a deleted thread. Nobody can begin to write there any more; waiting for the drive's lock lets those who had begun
 * come to their end.
 */
export async function purgeContainer(
  database: Database,
  where: { spaceId: string; containerId: string },
  onBatch: () => void,
): Promise<void> {
  await transaction(database, (tx) => Drive.lock(where.spaceId, tx)).catch(ignoreGone);
  const root = await DriveItem.rootOf(where.spaceId, where.containerId);
  if (root !== null) await purgeSubtree(database, root, onBatch);
}

/** Removes the whole drive of a deleted space. Without its row no late upload finds a place any more. */
export async function purgeDrive(database: Database, spaceId: string, onBatch: () => void): Promise<void> {
  for (let isEmpty = false; !isEmpty; ) {
    for (const root of await DriveItem.findAll({ where: { parentId: spaceId }, limit: itemsPerBatch })) {
      await purgeSubtree(database, root, onBatch);
    }
    isEmpty = await transaction(database, async (tx) => {
      await Drive.findOne({ where: { spaceId }, transaction: tx, lock: tx.LOCK.UPDATE });
      if ((await DriveItem.count({ where: { parentId: spaceId }, transaction: tx })) > 0) return false;
      await Drive.destroy({ where: { spaceId }, transaction: tx });
      return true;
    });
  }
  await DriveUpload.destroy({ where: { spaceId } });
  await DriveObject.doomSpace(spaceId);
}
