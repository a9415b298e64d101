import {
  ActivityCancellationType,
  type ActivityOptions,
  type LocalActivityOptions,
  type RetryPolicy,
} from '@temporalio/workflow';

/*
 * How activities are retried. A workflow takes one of these and adds the time limits of its own work. Only the number of
 * attempts is ever changed, with the reason where that is done.
 */

/** A person waits, and the other side is ours: a host of computers, a database server. */
export const promptly = {
  initialInterval: '200 milliseconds',
  maximumInterval: '5 seconds',
} as const satisfies RetryPolicy;

/**
 * The other side may be down for minutes: an object store, a git server, another company. It is not asked more often
 * than once a minute then.
 */
export const patiently = { initialInterval: '1 second', maximumInterval: '1 minute' } as const satisfies RetryPolicy;

/** The same, where nobody waits and the other side may be down for hours. */
export const rarely = { initialInterval: '2 seconds', maximumInterval: '5 minutes' } as const satisfies RetryPolicy;

/**
 * Activities that touch only rows. They are safe to repeat for as long as the database is down, and nothing may be left
 * undone because it was: attempts are unlimited.
 */
export const rows: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
};

/**
 * The same as local activities, for workflows that somebody waits for. They save the server an activity and a workflow
 * task each.
 */
export const rowsLocally: LocalActivityOptions = {
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
};

/**
 * Model calls and tools. A crash is noticed by missing heartbeats and tried again at once; a part that they find away is
 * back within minutes.
 */
export function modelWork(heartbeatTimeoutMs: number): ActivityOptions {
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
