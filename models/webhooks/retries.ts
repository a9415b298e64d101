/** How an attempt has gone: the status of the answer, or why there was none; `error` is null where it was taken. */
export type AttemptEnd = ({ answer: number; error: string | null } | { answer: null; error: string }) & {
  /** How long the endpoint asks to be left alone. */
  retryAfterMs?: number | undefined;
};

const gone = 410;
/** Attempts that failed together shall not come back together. */
const mostJitter = 0.2;
/** An endpoint that has failed for long is tried less often, but still soon enough to see that it was mended. */
const pausePerFailing = 0.1;
const longestPauseMs = 5 * 60_000;

/**
 * The milliseconds until a delivery's next attempt, after `attempts` before the one that has just failed; undefined
 * where that was the last. `random` is between 0 and 1.
 */
export function retryDelayMs(
  { answer, retryAfterMs = 0 }: AttemptEnd,
  attempts: number,
  retryDelaysMs: readonly number[],
  random = Math.random(),
): number | undefined {
  const delayMs = retryDelaysMs[attempts];
  if (answer === gone || delayMs === undefined) return undefined;
  return Math.max(Math.round(delayMs * (1 + random * mostJitter)), retryAfterMs);
}

/** How long an endpoint that has just failed, and has failed for `failingForMs`, is left alone. */
export function pauseMs({ retryAfterMs = 0 }: AttemptEnd, failingForMs: number): number {
  return Math.max(Math.min(Math.round(failingForMs * pausePerFailing), longestPauseMs), retryAfterMs);
}

/**
 * Why an endpoint that has just failed is disabled; undefined where it is not. One that is told of little may have failed
 * last a week ago: it is given all attempts of a delivery.
 */
export function disabledBy(
  { answer }: AttemptEnd,
  failingForMs: number,
  { isLast, longestFailingMs }: { isLast: boolean; longestFailingMs: number },
) {
  if (answer === gone) return 'GONE';
  return isLast && failingForMs >= longestFailingMs ? 'FAILING' : undefined;
}
