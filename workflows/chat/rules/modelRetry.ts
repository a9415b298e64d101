/** How a model call failed, without any of its content. */
export interface ModelFailure {
  code: string;
  /** The same call may succeed later. */
  retryable: boolean;
  /** The wait that the provider asked for with Retry-After. */
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
/** When a provider asks for a longer wait than this, the next model takes over. */
const longestRetryAfterMs = 60_000;

/**
 * What to do after attempt `attempt` (from 1) on one model has failed: wait and try again, go on with the catalogue's
 * next model, or give up. The catalogue is walked in a circle, so reaching a model that is already in `tried` means
 * that all have been. `random` (0 to 1) spreads the retries of many turns hit by one outage.
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
