import { ActivityFailure, ApplicationFailure, sleep, type WorkflowInterceptors } from '@temporalio/workflow';

const firstWaitMs = 5_000;
const longestWaitMs = 5 * 60_000;

/**
 * Wraps every activity that a workflow calls. If a worker of another version does not know the activity, it is called
 * again until it reaches a worker that does. Without this, it would fail after its few attempts while workers are being
 * replaced.
 */
export const interceptors = (): WorkflowInterceptors => ({
  outbound: [
    {
      async scheduleActivity(input, next) {
        for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
          try {
            return await next(input);
          } catch (error) {
            if (!isUnknown(error)) throw error;
            await sleep(waitMs);
          }
        }
      },
    },
  ],
});

/** Whether the error is Temporal's own for an activity that the worker does not have. */
function isUnknown(error: unknown): boolean {
  if (!(error instanceof ActivityFailure) || !(error.cause instanceof ApplicationFailure)) return false;
  return error.cause.type === 'NotFoundError' && error.cause.message.includes('is not registered on this Worker');
}
