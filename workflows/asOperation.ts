import { ActivityFailure, CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/main.ts';
import type { OperationEnd } from '../models/operations/operation.ts';
import { tellBadEnd } from './outcome.ts';
import { rows } from './retries.ts';

const { endOperation } = proxyActivities<Activities>(rows);

/** `refused` is a failure that only the caller can correct. Its row says `failed`. */
type WorkEnd = OperationEnd | { status: 'refused'; code: string; detail: string };

/**
 * Does an operation's work and always records how it ended. `work` returns the end, undefined for a success without a
 * result, or `ended` if its last transaction has already recorded the end. An error ends the operation as cancelled or
 * failed, and then fails the workflow too, so that an operator sees it.
 */
export async function asOperation(
  operationId: string,
  work: () => Promise<WorkEnd | 'ended' | undefined>,
): Promise<void> {
  let end: WorkEnd | 'ended';
  let failure: unknown;
  try {
    end = (await work()) ?? { status: 'succeeded' };
  } catch (error) {
    if (isCancellation(error)) end = { status: 'cancelled' };
    else if (error instanceof ActivityFailure) end = failed;
    else throw error; // our bug: the task is retried until it is fixed
    failure = error;
  }
  if (end === 'ended') return;
  const reached = end;
  const stored: OperationEnd = reached.status === 'refused' ? { ...reached, status: 'failed' } : reached;
  await CancellationScope.nonCancellable(() => endOperation({ operationId, end: stored }));
  if (reached.status !== 'succeeded') tellBadEnd('Operation', reached);
  if (failure !== undefined) throw failure;
}

const failed = {
  status: 'failed',
  code: 'OPERATION_FAILED',
  detail: 'The operation could not be done. Its workflow says why; an operator can see it.',
} as const;
