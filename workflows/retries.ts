import {
  ActivityCancellationType,
  ActivityFailure,
  type ActivityInterfaceFor,
  type ActivityOptions,
  ApplicationFailure,
  type LocalActivityOptions,
  patched,
  proxyActivities,
  proxyLocalActivities,
  type RetryPolicy,
  TimeoutFailure,
} from '@temporalio/workflow';

/*
 * How activities are retried. A workflow takes one of these policies and adds the time limits of its own work. It may
 * also change the number of attempts, and then says why.
 */

/** A person waits, and the other side belongs to the installation: a host of computers, a database server. */
export const promptly = {
  initialInterval: '200 milliseconds',
  maximumInterval: '5 seconds',
} as const satisfies RetryPolicy;

/**
 * The other side may be down for minutes: an object store, a git server, another company. It is then asked at most once
 * a minute.
 */
export const patiently = { initialInterval: '1 second', maximumInterval: '1 minute' } as const satisfies RetryPolicy;

/** For work that no person waits for, where the other side may be down for hours. */
export const rarely = { initialInterval: '2 seconds', maximumInterval: '5 minutes' } as const satisfies RetryPolicy;

/**
 * Activities that touch only rows. They are safe to repeat for as long as the database is down. Attempts are unlimited,
 * so that an outage leaves no work undone.
 */
export const rows: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '500 milliseconds', maximumInterval: '30 seconds' },
};

/**
 * Ends after three seconds of failures, or five of silence. The attempts are limited too, since their time limit is not
 * looked at between them.
 */
const rowsLocally: LocalActivityOptions = {
  scheduleToCloseTimeout: '5 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumAttempts: 5 },
};
const rowsAnywhere: ActivityOptions = {
  ...rows,
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 1.5, maximumInterval: '15 seconds' },
};
/** After this time, a workflow tries its own worker again. */
const anywhereMs = 60_000;

/**
 * Like {@link rows}, but as local activities, for workflows that a person waits for. Each saves the server an activity
 * and a workflow task. If they fail or are silent, any worker may do their work, and the further row work: this worker
 * may have lost the database alone, and it keeps its workflows as long as it reaches Temporal. To be called within a
 * workflow, whose state it keeps.
 */
export function proxyRows<A>(): ActivityInterfaceFor<A> {
  type Call = (...args: unknown[]) => Promise<unknown>;
  const here = proxyLocalActivities<A>(rowsLocally);
  const anywhere = proxyActivities<A>(rowsAnywhere);
  let anywhereUntil = 0;
  const callOf =
    (name: keyof ActivityInterfaceFor<A>): Call =>
    async (...args) => {
      if (Date.now() < anywhereUntil) return (anywhere[name] as Call)(...args);
      try {
        return await (here[name] as Call)(...args);
      } catch (error) {
        if (!isGivenUp(error) || !patched('rows-anywhere')) throw error;
        anywhereUntil = Date.now() + anywhereMs;
        return (anywhere[name] as Call)(...args);
      }
    };
  return new Proxy({} as ActivityInterfaceFor<A>, { get: (_, name) => callOf(name as keyof ActivityInterfaceFor<A>) });
}

/** Whether a local activity was given up after its attempts or its time, rather than refused or cancelled. */
function isGivenUp(error: unknown): boolean {
  const failure = failureOf(error);
  return failure instanceof TimeoutFailure || (failure !== undefined && failure.nonRetryable !== true);
}

/**
 * What an activity failed with. Undefined for a cancellation, and for errors of the workflow itself. The failure of a
 * local activity is not in an `ActivityFailure`, unless it has timed out and this is not a replay.
 */
export function failureOf(error: unknown): TimeoutFailure | ApplicationFailure | undefined {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  return cause instanceof TimeoutFailure || cause instanceof ApplicationFailure ? cause : undefined;
}

/**
 * Model calls and tools. Missing heartbeats reveal a crash, and the work is repeated at once. The attempts cover about
 * five minutes, in which an unreachable service should be back.
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
