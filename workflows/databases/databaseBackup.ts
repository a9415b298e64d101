import { ActivityFailure, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities, BackupQueueActivities } from '../../activities/main.ts';
import { failureCode } from '../failureCode.ts';
import { tellBadEnd } from '../outcome.ts';

export interface DatabaseBackupInput {
  backupId: string;
  /** The queue of the activity that makes it. */
  backupQueue: string;
  heartbeatTimeoutMs: number;
}

// Only a row is touched: safe to repeat for as long as the database is down.
const { failDatabaseBackup } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/** One backup of a space's database. */
export async function databaseBackup(input: DatabaseBackupInput): Promise<void> {
  const { backupId, backupQueue, heartbeatTimeoutMs } = input;
  // Each attempt begins anew. What still fails after minutes is left to the next backup, and so is what others have
  // kept from beginning for too long.
  const { backUpDatabase } = proxyActivities<BackupQueueActivities>({
    taskQueue: backupQueue,
    startToCloseTimeout: '4 hours',
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: 8 },
  });
  try {
    await backUpDatabase({ backupId });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    const code = failureCode(error);
    await failDatabaseBackup({ backupId, code });
    tellBadEnd('Backup', { status: 'failed', code });
  }
}
