import { setTimeout as delay } from 'node:timers/promises';
import { isAway } from '../models/database/unavailable.ts';

/** As long as a model call is retried while a part of Atrium is unreachable. */
const giveUpAfterMs = 5 * 60_000;
const firstRetryMs = 100;
const longestRetryMs = 5_000;

/**
 * Repeats `work` while the database or the object store is unreachable, for up to five minutes. For work that must not
 * be lost with the activity's attempt. Throws the signal's reason when it is aborted.
 */
export async function untilBack<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
  mayHeal: (error: unknown) => boolean = isAway,
): Promise<T> {
  const startedAtMs = performance.now();
  for (let retryMs = firstRetryMs; ; retryMs = Math.min(retryMs * 2, longestRetryMs)) {
    try {
      return await work();
    } catch (error) {
      if (!mayHeal(error) || performance.now() - startedAtMs > giveUpAfterMs) throw error;
    }
    await delay(retryMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
    signal.throwIfAborted();
  }
}
