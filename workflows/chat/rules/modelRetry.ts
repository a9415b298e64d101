/** How a model call failed, without a word of what was said. */
export interface ModelFailure {
  code: string;
  /** The same call may succeed later. */
  retryable: boolean;
  /** What the provider asked for with Retry-After. */
  retryAfterMs?: number;
  /** The catalogue's next model that may take over, if this failure allows one. */
  fallbackModelId?: string;
}

export type AfterFailure =
  | { action: 'retry'; delayMs: number }
  | { action: 'fallback'; modelId: string }
  | { action: 'fail' };

export const maxAttemptsPerModel = 3;
const firstDelayMs = 500;
const longestDelayMs = 8_000;
/** A provider that asks for more patience than this is given up for the next model. */
const longestRetryAfterMs = 60_000;

/**
 * What to do after attempt number `attempt` (from 1) on one model has failed: wait and try again, go on with the
 * catalogue's next model, or give up. The catalogue goes round, so a model that is among those `tried` in this step
 * means that all have been. `random` (0 to 1) spreads the retries of many turns that one outage has hit.
 */
export function decideAfterFailure(
  failure: ModelFailure,
  attempt: number,
  tried: readonly string[],
  random: number,
): AfterFailure {
  const asked = failure.retryAfterMs;
  const patient = asked === undefined || asked <= longestRetryAfterMs;
  if (failure.retryable && patient && attempt < maxAttemptsPerModel) {
    const backoffMs = Math.min(firstDelayMs * 2 ** (attempt - 1), longestDelayMs) * (0.75 + random / 2);
    return { action: 'retry', delayMs: Math.round(Math.max(asked ?? 0, backoffMs)) };
  }
  const next = failure.fallbackModelId;
  return next === undefined || tried.includes(next) ? { action: 'fail' } : { action: 'fallback', modelId: next };
}
