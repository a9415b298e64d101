import { ActivityCancellationType, type ActivityOptions, type LocalActivityOptions } from '@temporalio/workflow';

/**
 * For local activities that touch only rows: safe to repeat for as long as the database is down, so attempts are
 * unlimited.
 */
export const untilTheDatabaseIsBack: LocalActivityOptions = {
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
};

/**
 * For model calls and tools. A crash is noticed by missing heartbeats and tried again at once; what they find away is
 * back within minutes.
 */
export function longWork(heartbeatTimeoutMs: number): ActivityOptions {
  return {
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: heartbeatTimeoutMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: {
      initialInterval: '100 milliseconds',
      backoffCoefficient: 1.5,
      maximumInterval: '5 seconds',
      maximumAttempts: 60,
    },
  };
}
