import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';

export interface PurgeTrashInput {
  operationId: string;
  spaceId: string;
  /** Already out of sight; null for the whole trash that the operation names. */
  itemId: string | null;
  heartbeatTimeoutMs: number;
}

// Rows only; repeating it does no harm, and an operation must end.
const { endOperation } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/**
 * Removes for good what was put into the trash: first the rows, which are out of sight since the request, then their objects from the
 * store. An object's own row goes last, so none is forgotten, whatever is killed on the way.
 */
export async function purgeTrash(input: PurgeTrashInput): Promise<void> {
  const { operationId, spaceId, itemId } = input;
  // Safe to repeat, and giving up would leave what somebody asked to be removed: no last attempt, however long the store is away.
  const { markTrash, purgeMarked, removeObjects } = proxyActivities<Activities>({
    startToCloseTimeout: '6 hours',
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: '500 milliseconds', maximumInterval: '1 minute' },
  });
  try {
    if (itemId === null) await markTrash({ operationId });
    await purgeMarked(itemId === null ? { spaceId } : { itemId });
    await removeObjects({ spaceId });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const end = { status: 'cancelled' } as const;
    await CancellationScope.nonCancellable(() => endOperation({ operationId, end }));
    throw error;
  }
  await endOperation({ operationId, end: { status: 'succeeded' } });
}
