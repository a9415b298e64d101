import { CancelledFailure } from '@temporalio/activity';

/** A cancellation by the workflow means stop; one by a worker's shutdown means that another worker goes on. */
export function isStopByWorkflow(cancelled: AbortSignal): boolean {
  return cancelled.aborted && cancelled.reason instanceof CancelledFailure && cancelled.reason.message === 'CANCELLED';
}
