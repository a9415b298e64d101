import { driveModels } from '../../models/drive/models.ts';
import { markOldTrash, purgeMarked } from '../../models/drive/purgeItems.ts';
import { removeDoomed } from '../../models/drive/removeObjects.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DriveDeps } from './deps.ts';

/** What the sweeper does for the drive. */
export function createDriveSweeps({ database, config, storage: store }: DriveDeps) {
  return {
    /**
     * Gives up uploads that were abandoned or have expired, purges what has been in the trash for too long, and removes
     * every object that nothing refers to. `refused` counts those that the store does not let go.
     */
    async sweepDrive(): Promise<{ abandoned: number; removed: number; refused: number }> {
      using heartbeat = keepAlive();
      const onBatch = () => heartbeat.cancelled.throwIfAborted();
      const now = new Date();
      await markOldTrash(database, new Date(now.getTime() - config.drive.trashRetentionDays * 86_400_000));
      await purgeMarked(database, {}, onBatch);
      const abandoned = await driveModels(database).DriveObject.doomExpired(now);
      await driveModels(database).DriveUpload.purgeExpired(now);
      return { abandoned, ...(await removeDoomed({ database, store }, { onBatch })) };
    },
  };
}

export const driveSweeps = ['sweepDrive'] as const satisfies readonly (keyof ReturnType<typeof createDriveSweeps>)[];
