import { chatModels } from '../../models/chat/models.ts';
import type { PurgeScope } from '../../models/chat/purge.ts';
import { threadContainerId } from '../../models/drive/containers.ts';
import { purgeContainer, purgeDrive } from '../../models/drive/purge.ts';
import { markTrash, purgeMarked } from '../../models/drive/purgeItems.ts';
import { removeDoomed } from '../../models/drive/removeObjects.ts';
import { operationModels } from '../../models/operations/operation.ts';
import { keepAlive } from '../keepAlive.ts';
import { requireOrder, requireOwnWorkflow } from '../order.ts';
import type { DriveDeps } from './deps.ts';

/** Permanent removal of files. Each activity continues where it was interrupted. */
export function createDrivePurges({ database, storage: store }: DriveDeps) {
  return {
    /** Hides the items that were in a trash when the request to empty it came. Later items stay. */
    async markTrash({ operationId }: { operationId: string }): Promise<void> {
      using _heartbeat = keepAlive();
      requireOwnWorkflow(operationId);
      const found = await operationModels(database).Operation.findByPk(operationId);
      const { spaceId, subjectId, createdAt } = await requireOrder(database, { trashOf: found?.spaceId ?? '' });
      await markTrash(database, { spaceId: spaceId ?? '', containerId: subjectId }, createdAt);
    },

    /** Removes the marked items: one, or all in a space. */
    async purgeMarked(scope: { itemId: string } | { spaceId: string }): Promise<void> {
      using heartbeat = keepAlive();
      await requireOrder(database, 'itemId' in scope ? scope : { trashOf: scope.spaceId });
      await purgeMarked(database, scope, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Removes the doomed objects of a space. */
    async removeObjects({ spaceId }: { spaceId: string }): Promise<void> {
      using heartbeat = keepAlive();
      await requireOrder(database, { trashOf: spaceId });
      await removeDoomed({ database, store }, { spaceId, onBatch: () => heartbeat.cancelled.throwIfAborted() });
    },

    /** Removes the files of a deleted thread, or the whole drive of a deleted space. */
    async purgeDriveOf(scope: PurgeScope): Promise<void> {
      using heartbeat = keepAlive();
      await requireOrder(database, scope);
      const onBatch = () => heartbeat.cancelled.throwIfAborted();
      const spaceId =
        'spaceId' in scope ? scope.spaceId : (await chatModels(database).Thread.findByPk(scope.threadId))?.spaceId;
      if (spaceId === undefined) return;
      if ('spaceId' in scope) await purgeDrive(database, spaceId, onBatch);
      else await purgeContainer(database, { spaceId, containerId: threadContainerId(scope.threadId) }, onBatch);
      await removeDoomed({ database, store }, { spaceId, onBatch });
    },
  };
}
