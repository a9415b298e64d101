import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { patiently } from '../retries.ts';

export interface PurgeTrashInput {
  operationId: string;
  spaceId: string;
  /** The item, which is hidden already. Null means all items in the trash that the operation names. */
  itemId: string | null;
  heartbeatTimeoutMs: number;
}

/**
 * Permanently removes trashed items: first the rows, hidden since the request, then their objects from the store. An
 * object's own row goes last, so a crash cannot orphan an object.
 */
export async function purgeTrash(input: PurgeTrashInput): Promise<void> {
  const { operationId, spaceId, itemId } = input;
  // Attempts are unlimited, however long the store is down: repeating is safe, and giving up would keep data whose
  // removal was requested.
  const { markTrash, purgeMarked, removeObjects } = proxyActivities<Activities>({
    startToCloseTimeout: '6 hours',
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: patiently,
  });
  await asOperation(operationId, async () => {
    if (itemId === null) await markTrash({ operationId });
    await purgeMarked(itemId === null ? { spaceId } : { itemId });
    await removeObjects({ spaceId });
    return undefined;
  });
}
