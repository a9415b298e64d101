import { type Database, transaction } from '../database/database.ts';
import { driveModels } from './models.ts';
import { purgeSubtree } from './purgeItems.ts';
import { abortUploadsInto } from './uploads.ts';

const itemsPerBatch = 500;

/**
 * Removes the files of a deleted container and the uploads into it. No new write can begin there. Waiting for the
 * drive's lock lets writes that are under way finish.
 */
export async function purgeContainer(
  database: Database,
  where: { spaceId: string; containerId: string },
  onBatch: () => void,
): Promise<void> {
  const { Drive, DriveItem } = driveModels(database);
  await transaction(database, (tx) => Drive.wait(where.spaceId, tx));
  await abortUploadsInto(database, where);
  const root = await DriveItem.rootOf(where.spaceId, where.containerId);
  if (root !== null) await purgeSubtree(database, root, onBatch);
}

/** Removes the whole drive of a deleted space. Once its row is gone, a late upload has nowhere to go. */
export async function purgeDrive(database: Database, spaceId: string, onBatch: () => void): Promise<void> {
  const { Drive, DriveItem, DriveObject, DriveUpload } = driveModels(database);
  for (let isEmpty = false; !isEmpty; ) {
    for (const root of await DriveItem.findAll({ where: { parentId: spaceId }, limit: itemsPerBatch })) {
      await purgeSubtree(database, root, onBatch);
    }
    isEmpty = await transaction(database, async (tx) => {
      await Drive.wait(spaceId, tx);
      if ((await DriveItem.count({ where: { parentId: spaceId }, transaction: tx })) > 0) return false;
      await Drive.destroy({ where: { spaceId }, transaction: tx });
      return true;
    });
  }
  await DriveUpload.destroy({ where: { spaceId } });
  await DriveObject.doomSpace(spaceId);
}
