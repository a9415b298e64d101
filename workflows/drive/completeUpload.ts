import { ActivityFailure, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';

export interface CompleteUploadInput {
  operationId: string;
  uploadId: string;
  heartbeatTimeoutMs: number;
}

// Rows only; repeating it does no harm, and an operation must end.
const { endOperation } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/** Makes a file of the parts that a client has sent to the store. What cannot be completed now stays, to be mended and tried again. */
export async function completeUpload(input: CompleteUploadInput): Promise<void> {
  const { operationId, uploadId } = input;
  // Hashing reads the whole file: minutes at 5 GiB. It can be repeated at any point, and waits for a store that is away.
  const { finishUpload } = proxyActivities<Activities>({
    startToCloseTimeout: '2 hours',
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
  });
  try {
    const outcome = await finishUpload({ uploadId });
    const end =
      outcome.kind === 'placed'
        ? { status: 'succeeded' as const, result: { itemId: outcome.itemId } }
        : { status: 'failed' as const, code: outcome.code, detail: outcome.detail };
    await endOperation({ operationId, end });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const end = { status: 'cancelled' } as const;
    await CancellationScope.nonCancellable(() => endOperation({ operationId, end }));
    throw error;
  }
}
