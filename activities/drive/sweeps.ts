import { driveModels } from '../../models/drive/models.ts';
import { markOldTrash, purgeMarked } from '../../models/drive/purgeItems.ts';
import { removeDoomed } from '../../models/drive/removeObjects.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';
import type { DriveDeps } from './deps.ts';

/** What the sweeper does for the drive. */
export function createDriveSweeps({ database, config, storage: store }: DriveDeps) {
  return {
    /** Purges what has been in the trash for too long. */
    async purgeDriveTrash(): Promise<void> {
      using heartbeat = keepAlive();
      const onBatch = () => heartbeat.cancelled.throwIfAborted();
      await markOldTrash(database, new Date(Date.now() - config.drive.trashRetentionDays * 86_400_000), onBatch);
      await purgeMarked(database, {}, onBatch);
    },

    /** Gives up uploads that were abandoned or have expired. */
    async giveUpUploads(): Promise<{ abandoned: number }> {
      const now = new Date();
      const abandoned = await driveModels(database).DriveObject.doomExpired(now);
      await driveModels(database).DriveUpload.purgeExpired(now);
      return { abandoned };
    },

    /** Removes every object that nothing refers to. `refused` counts those that the store does not let go. */
    async removeDriveObjects(): Promise<{ removed: number; refused: number }> {
      using heartbeat = keepAlive();
      return removeDoomed({ database, store }, { onBatch: () => heartbeat.cancelled.throwIfAborted() });
    },
  };
}

export const driveSweeps = {
  rescue: [],
  upkeep: ['purgeDriveTrash', 'giveUpUploads', 'removeDriveObjects'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDriveSweeps>>;
