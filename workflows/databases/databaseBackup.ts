import { proxyActivities } from '@temporalio/workflow';
import type { Activities, BackupQueueActivities } from '../../activities/main.ts';
import { codeOf } from '../actor.ts';
import { tellBadEnd } from '../outcome.ts';
import { patiently, rows } from '../retries.ts';

export interface DatabaseBackupInput {
  backupId: string;
  /** The task queue of the activity that makes the backup. */
  backupQueue: string;
  heartbeatTimeoutMs: number;
}

const { failDatabaseBackup } = proxyActivities<Activities>(rows);

/** One backup of a space's database. */
export async function databaseBackup({
  backupId,
  backupQueue,
  heartbeatTimeoutMs,
}: DatabaseBackupInput): Promise<void> {
  const { backUpDatabase } = proxyActivities<BackupQueueActivities>({
    taskQueue: backupQueue,
    startToCloseTimeout: '4 hours',
    // Other backups may keep it from starting. After this time it is left to the next backup.
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    // Each attempt starts over. If it still fails after minutes, it is left to the next backup.
    retry: { ...patiently, maximumAttempts: 8 },
  });
  const code = await codeOf(backUpDatabase({ backupId }));
  if (code === undefined) return;
  await failDatabaseBackup({ backupId, code });
  tellBadEnd('Backup', { status: 'failed', code });
}
