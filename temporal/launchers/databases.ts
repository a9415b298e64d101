import { databaseBackup } from '../../workflows/databases/databaseBackup.ts';
import { spaceDatabase } from '../../workflows/databases/spaceDatabase.ts';
import type { LauncherParts, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { backupTaskQueue, longDatabaseTaskQueue } from '../taskQueues.ts';
import { databaseBackupWorkflowId } from '../workflowIds.ts';

export function createDatabaseLauncher({ config, kit }: LauncherParts) {
  const {
    installation,
    temporal: { heartbeatTimeoutMs },
  } = config;
  const databases = kit.actor(spaceDatabase, {
    inputOf: (databaseId, limits) => ({ databaseId, longQueue: longDatabaseTaskQueue(installation), ...limits }),
    summary: 'Database',
  });
  return {
    startDatabase: databases.tell,

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
