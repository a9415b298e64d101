import { ActivityFailure, ApplicationFailure, sleep, type WorkflowInterceptors } from '@temporalio/workflow';

const firstWaitMs = 5_000;
const longestWaitMs = 5 * 60_000;

/**
 * Around every activity that a workflow calls: one that a worker of another version does not know is called again until
 * a worker takes it that does. It would fail after its few attempts otherwise, while workers are being replaced.
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

/** What Temporal's worker answers for an activity that it does not have. */
function isUnknown(error: unknown): boolean {
  if (!(error instanceof ActivityFailure) || !(error.cause instanceof ApplicationFailure)) return false;
  return error.cause.type === 'NotFoundError' && error.cause.message.includes('is not registered on this Worker');
}
