import { createContentFindings } from '../../models/drive/findings.ts';
import { driveModels } from '../../models/drive/models.ts';
import { markOldTrash, purgeMarked } from '../../models/drive/purgeItems.ts';
import { removeDoomed } from '../../models/drive/removeObjects.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';
import { sweepTime } from '../sweepTime.ts';
import type { DriveDeps } from './deps.ts';

const contentsAtOnce = 500;
/** How often damaged or missing objects are checked again. An operator may have restored them. */
const lookAgainMs = 24 * 3_600_000;

/** The sweeps of the drive. */
export function createDriveSweeps({ database, config, storage: store }: DriveDeps) {
  return {
    /** Purges items whose retention time in the trash has passed. */
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

    /** Removes every doomed object. `refused` counts objects that the store refuses to remove. */
    async removeDriveObjects(): Promise<{ removed: number; refused: number }> {
      using heartbeat = keepAlive();
      return removeDoomed({ database, store }, { onBatch: () => heartbeat.cancelled.throwIfAborted() });
    },

    /**
     * Reads objects that may have been lost in a power failure, and those found damaged or missing a day ago, and
     * compares them with their hashes. One object may take longer than a round: it is read to its end, and then the
     * round stops. An object that cannot be read keeps its finding, and comes after the others next time.
     */
    async sweepContents(): Promise<{ looked: number; damaged: number; missing: number; failed: number }> {
      using heartbeat = keepAlive();
      const cancelled = sweepTime.getStore()?.cancelled ?? heartbeat.cancelled;
      const findings = createContentFindings(database);
      const report = { looked: 0, damaged: 0, missing: 0, failed: 0 };
      const before = new Date(Date.now() - lookAgainMs);
      await lookAt(() => findings.suspects(contentsAtOnce));
      await lookAt(() => findings.foundBefore(before, contentsAtOnce));
      heartbeat.cancelled.throwIfAborted();
      return report;

      /** Checks at least one object, so that neither list waits for the end of the other. */
      async function lookAt(page: () => Promise<string[]>): Promise<void> {
        const looked = new Set<string>();
        for (;;) {
          const objectKeys = (await page()).filter((objectKey) => !looked.has(objectKey));
          if (objectKeys.length === 0) return;
          for (const objectKey of objectKeys) {
            const finding = await store.lookAgain(objectKey, cancelled).catch(() => 'failed' as const);
            cancelled.throwIfAborted();
            await findings.noteLook(objectKey);
            looked.add(objectKey);
            report.looked += 1;
            if (finding !== null) report[finding] += 1;
            if (heartbeat.cancelled.aborted) return;
          }
        }
      }
    },
  };
}

export const driveSweeps = {
  rescue: [],
  upkeep: ['purgeDriveTrash', 'giveUpUploads', 'removeDriveObjects'],
  contents: ['sweepContents'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDriveSweeps>>;
