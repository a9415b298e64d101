import { CancelledFailure } from '@temporalio/activity';

/** Cancellation by the workflow means stop; a worker that shuts down means: somebody else goes on. */
export function isStopByWorkflow(cancelled: AbortSignal): boolean {
  return cancelled.aborted && cancelled.reason instanceof CancelledFailure && cancelled.reason.message === 'CANCELLED';
}
