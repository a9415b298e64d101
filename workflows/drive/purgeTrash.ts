import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/main.ts';
import { asOperation } from '../asOperation.ts';
import { patiently } from '../retries.ts';

export interface PurgeTrashInput {
  operationId: string;
  spaceId: string;
  /** Already out of sight; null for the whole trash that the operation names. */
  itemId: string | null;
  heartbeatTimeoutMs: number;
}

/**
 * Permanently removes what was put into the trash: first the rows, hidden since the request, then their objects from
 * the store. An object's own row goes last, so no crash can orphan an object.
 */
export async function purgeTrash(input: PurgeTrashInput): Promise<void> {
  const { operationId, spaceId, itemId } = input;
  // Safe to repeat, and giving up would leave what somebody asked to have removed: attempts are unlimited, however long
  // the store is down.
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
