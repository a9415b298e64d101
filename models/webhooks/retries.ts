/**
 * The outcome of an attempt: the status of the answer, or why none came. `error` is null if the delivery was accepted.
 */
export type AttemptEnd = ({ answer: number; error: string | null } | { answer: null; error: string }) & {
  /** How long the endpoint asks us to wait. */
  retryAfterMs?: number | undefined;
};

const gone = 410;
/** Spreads attempts that failed together, so that their retries do not come together. */
const mostJitter = 0.2;
/** The longer an endpoint fails, the less often it is tried, but often enough to notice a repair soon. */
const pausePerFailing = 0.1;
const longestPauseMs = 5 * 60_000;

/**
 * Milliseconds until the next attempt of a delivery that had `attempts` before the one that just failed. Undefined if
 * that was the last. `random` is between 0 and 1.
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

/** How long to pause an endpoint that just failed and has failed for `failingForMs`. */
export function pauseMs({ retryAfterMs = 0 }: AttemptEnd, failingForMs: number): number {
  return Math.max(Math.min(Math.round(failingForMs * pausePerFailing), longestPauseMs), retryAfterMs);
}

/**
 * Why to disable an endpoint that just failed. Undefined if it stays enabled. An endpoint with few events may have
 * failed last a week ago, so it first gets all attempts of a delivery.
 */
export function disabledBy(
  { answer }: AttemptEnd,
  failingForMs: number,
  { isLast, longestFailingMs }: { isLast: boolean; longestFailingMs: number },
) {
  if (answer === gone) return 'GONE';
  return isLast && failingForMs >= longestFailingMs ? 'FAILING' : undefined;
}
