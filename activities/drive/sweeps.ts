import { createContentFindings } from '../../models/drive/findings.ts';
import { driveModels } from '../../models/drive/models.ts';
import { markOldTrash, purgeMarked } from '../../models/drive/purgeItems.ts';
import { removeDoomed } from '../../models/drive/removeObjects.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';
import type { DriveDeps } from './deps.ts';

/** How long, and for how many objects, a sweep looks at contents. */
const contentsMs = 10_000;
const contentsAtOnce = 500;

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

    /**
     * Reads what may have been lost with the power, and holds it against its hash: for a while in each sweep, the smallest
     * first. What is as it was stored is no longer suspect; what cannot be read stays so.
     */
    async sweepContents(): Promise<{ looked: number; damaged: number; missing: number; failed: number }> {
      using heartbeat = keepAlive();
      const findings = createContentFindings(database);
      const report = { looked: 0, damaged: 0, missing: 0, failed: 0 };
      const onBytes = () => heartbeat.cancelled.throwIfAborted();
      const until = performance.now() + contentsMs;
      const suspects = await findings.suspects(contentsAtOnce);
      for (const objectKey of suspects) {
        heartbeat.cancelled.throwIfAborted();
        if (performance.now() > until) break;
        const finding = await store.verify(objectKey, onBytes).catch(() => 'failed' as const);
        heartbeat.cancelled.throwIfAborted();
        report.looked += 1;
        if (finding !== null) report[finding] += 1;
      }
      return report;
    },
  };
}

export const driveSweeps = {
  rescue: [],
  upkeep: ['purgeDriveTrash', 'giveUpUploads', 'removeDriveObjects', 'sweepContents'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDriveSweeps>>;
