import { ActivityFailure, CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/main.ts';
import type { OperationEnd } from '../models/operation.ts';

// Rows only; repeating it does no harm, and an operation must end: there is no last attempt.
const { endOperation } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
});

/**
 * Does the work of an operation and writes how it ended, whatever happens. `work` returns the end, nothing for a
 * success without a result, or `ended` where its last transaction has written the end. What it throws ends the
 * operation as cancelled or failed, and then the workflow too, so that an operator sees it.
 */
export async function asOperation(
  operationId: string,
  work: () => Promise<OperationEnd | 'ended' | undefined>,
): Promise<void> {
  let end: OperationEnd | 'ended';
  let failure: unknown;
  try {
    end = (await work()) ?? { status: 'succeeded' };
  } catch (error) {
    if (isCancellation(error)) end = { status: 'cancelled' };
    else if (error instanceof ActivityFailure) end = failed;
    else throw error; // a mistake of ours: the task is tried again, until it is mended
    failure = error;
  }
  if (end === 'ended') return;
  const reached = end;
  await CancellationScope.nonCancellable(() => endOperation({ operationId, end: reached }));
  if (failure !== undefined) throw failure;
}

const failed = {
  status: 'failed',
  code: 'OPERATION_FAILED',
  detail: 'The operation could not be done. Its workflow says why; an operator can see it.',
} as const;
