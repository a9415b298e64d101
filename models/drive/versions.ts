import { DomainError, notFound } from '../../base/errors.ts';
import { type Changer, noteAppChange } from '../apps/changes.ts';
import { type On, transactionOf } from '../database/bound.ts';
import { type Database, transaction } from '../database/database.ts';
import type { Content, DriveItem } from './driveItem.ts';
import { requireMatch } from './match.ts';
import { driveModels } from './models.ts';
import { placeOf } from './place.ts';
import { indexWords } from './wordIndex.ts';

/** A file's content, present or earlier, with its validators. */
export async function contentOf(
  on: On,
  item: DriveItem,
  version?: number,
): Promise<Content & { etag: string; modifiedAt: Date }> {
  if (!item.isFile) throw new DomainError('conflict', 'NOT_A_FILE', 'The item is not a file.');
  const current = version === undefined || version === item.version;
  const { DriveVersion } = driveModels(on);
  const row = current
    ? item
    : await DriveVersion.findOne({ where: { itemId: item.id, version }, transaction: transactionOf(on) });
  if (row?.content === undefined || row.etag === null) throw notFound('version');
  return { ...row.content, etag: row.etag, modifiedAt: row instanceof DriveVersion ? row.createdAt : row.updatedAt };
}

/** Makes an earlier content current, as a new version. The replaced content becomes a version like any other. */
export async function restoreVersion(
  database: Database,
  change: {
    spaceId: string;
    itemId: string;
    version: number;
    /** The text of the version if it is a small text. */
    text: string;
    userId: string;
    by?: Changer | undefined;
    ifMatch?: string | undefined;
  },
  keptVersions: number,
): Promise<DriveItem> {
  const { spaceId, itemId, version, text, userId, ifMatch } = change;
  return transaction(database, async (tx) => {
    const { Drive, DriveItem, DriveVersion } = driveModels(tx);
    const drive = await Drive.lock(spaceId, tx);
    const item = await DriveItem.findOne({ where: { id: itemId, spaceId, live: 1 }, transaction: tx });
    if (item === null) throw notFound('item');
    requireMatch(item, ifMatch);
    if (item.version === version) return item;
    const earlier = await DriveVersion.findOne({ where: { itemId, version }, transaction: tx });
    if (earlier === null) throw notFound('version');
    await earlier.destroy({ transaction: tx });
    await DriveVersion.replace(item, earlier.content, { userId, keptVersions, tx });
    const { chain } = await placeOf(tx, item);
    await noteAppChange(
      tx,
      chain.map(({ id }) => id),
      change,
    );
    await indexWords({ driveNumber: drive.number, itemNumber: item.number }, 'text', text, tx);
    return item;
  });
}
