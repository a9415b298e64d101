import type { Config } from '../../config/index.ts';
import { databaseBackup } from '../../workflows/databases/databaseBackup.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { backupTaskQueue } from '../taskQueues.ts';
import { databaseBackupWorkflowId } from '../workflowIds.ts';

export function createDatabaseLauncher(kit: LauncherKit, { installation, temporal: { heartbeatTimeoutMs } }: Config) {
  return {
    startDatabaseBackup: ({ id, spaceId }: { id: string; spaceId: string }): Promise<Reached> =>
      kit.start(databaseBackup, {
        workflowId: databaseBackupWorkflowId(id),
        args: [{ backupId: id, backupQueue: backupTaskQueue(installation), heartbeatTimeoutMs }],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'databaseBackup' },
        ],
        summary: 'Backup of a database',
        mayStartAgain: true,
      }),
  };
}
