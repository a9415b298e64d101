import { Context } from '@temporalio/activity';
import { sweepTime } from './sweepTime.ts';

/** A third of the timeout: two heartbeats may be lost before the server gives the work to another worker. */
export const beatsPerTimeout = 3;
const longestIntervalMs = 5_000;

/**
 * Heartbeats on a timer while an activity waits for another system, so that its death is noticed and its cancellation
 * arrives. The signal is the activity's own; dispose of this when the work is done. For a sweep within a round, the
 * round heartbeats, and the signal is that of the sweep's own time.
 */
export function keepAlive(): { cancelled: AbortSignal } & Disposable {
  const time = sweepTime.getStore();
  if (time !== undefined) return { cancelled: time.signal, [Symbol.dispose]: () => undefined };
  const context = Context.current();
  const timeoutMs = context.info.heartbeatTimeoutMs ?? longestIntervalMs * beatsPerTimeout;
  const intervalMs = Math.min(timeoutMs / beatsPerTimeout, longestIntervalMs);
  const timer = setInterval(() => context.heartbeat(), intervalMs);
  return { cancelled: context.cancellationSignal, [Symbol.dispose]: () => clearInterval(timer) };
}
