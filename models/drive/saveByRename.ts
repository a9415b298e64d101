import type { Transaction } from 'sequelize';
import { select } from '../database/sql.ts';
import { driveContainerId } from './containers.ts';
import type { DriveItem } from './driveItem.ts';
import { driveModels } from './models.ts';
import { detach } from './tree.ts';
import { fieldBits, indexWords } from './wordIndex.ts';

/**
 * Programs save a file by writing a new one beside it, which they rename over it. The new one may be on the drive by
 * then. Its content becomes the next version of the file, whose id, links and versions stay.
 */

/** How long ago a program may have made the new file. */
const mostAgeMs = 10 * 60_000;

/** Whether a file that replaces another was made to save that. */
export async function isSaved(item: DriveItem, replaced: DriveItem, userId: string, tx: Transaction): Promise<boolean> {
  if (!item.isFile || !replaced.isFile || item.createdBy !== userId) return false;
  if (Date.now() - item.createdAt.getTime() > mostAgeMs) return false;
  return (await driveModels(tx).DriveVersion.count({ where: { itemId: item.id }, transaction: tx })) === 0;
}

/** Makes the content the next version of the replaced file. The item is hidden, and the next sweep removes it. */
export async function saveAsVersion(
  item: DriveItem,
  replaced: DriveItem,
  options: { userId: string; keptVersions: number; driveNumber: number; tx: Transaction },
): Promise<void> {
  const { userId, keptVersions, driveNumber, tx } = options;
  const { content, modifiedAt, isExecutable } = item;
  if (content === undefined) throw new Error('A file without a content cannot replace another.');
  const now = new Date();
  const gone = { live: null, trashedAt: now, trashedBy: userId, trashedFrom: driveContainerId, purgingAt: now };
  const { DriveVersion } = driveModels(tx);
  await detach(item, tx);
  // Its hash stays, so that a repeated request knows that it is done.
  await item.change({ ...gone, objectKey: null }, tx);
  await DriveVersion.replace(replaced, content, { userId, keptVersions, says: { modifiedAt, isExecutable }, tx });
  const text = await textWordsOf(item, driveNumber, tx);
  await indexWords({ driveNumber, itemNumber: replaced.number }, 'text', text, tx);
}

/** Whether an item has become a version of another by this. */
export function isSavedAs(item: DriveItem, replaced: DriveItem): boolean {
  return (
    item.purgingAt !== null && item.objectKey === null && item.sha256?.equals(replaced.sha256 ?? Buffer.of()) === true
  );
}

async function textWordsOf({ number }: DriveItem, driveNumber: number, tx: Transaction): Promise<string> {
  const sql = 'SELECT word FROM drive_words WHERE item_number = ? AND drive_number = ? AND fields & ?';
  const rows = await select<{ word: Buffer }>(tx, sql, [number, driveNumber, fieldBits.text]);
  return rows.map(({ word }) => word.toString()).join(' ');
}
