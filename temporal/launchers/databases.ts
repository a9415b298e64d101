import type { Config } from '../../config/index.ts';
import { databaseBackup } from '../../workflows/databases/databaseBackup.ts';
import { databaseChangedSignal, spaceDatabase } from '../../workflows/databases/spaceDatabase.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { backupTaskQueue, longDatabaseTaskQueue } from '../taskQueues.ts';
import { databaseBackupWorkflowId, databaseWorkflowId } from '../workflowIds.ts';

export function createDatabaseLauncher(kit: LauncherKit, { installation, temporal: { heartbeatTimeoutMs } }: Config) {
  return {
    /** Has the server follow a database's row: starts its workflow, or tells it. */
    startDatabase: ({ id, spaceId }: { id: string; spaceId: string }): Promise<Reached> =>
      kit.startOrSignal(spaceDatabase, databaseChangedSignal, {
        workflowId: databaseWorkflowId(id),
        args: [{ databaseId: id, longQueue: longDatabaseTaskQueue(installation), heartbeatTimeoutMs }],
        attributes: [
          { key: spaceIdKey, value: spaceId },
          { key: kindKey, value: 'spaceDatabase' },
        ],
        summary: 'Database',
        mayStartAgain: true,
      }),

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

export type DatabaseLauncher = ReturnType<typeof createDatabaseLauncher>;
