import { setTimeout as sleep } from 'node:timers/promises';
import { StackError } from './errors.ts';
import { formatDuration, type Report } from './report.ts';

export interface WaitOptions {
  /** As a person knows it: begins a sentence. */
  title: string;
  report: Report;
  signal: AbortSignal;
  timeoutMs: number;
  /** How often a longer wait is reported. */
  progressMs?: number;
  pollMs?: number;
  /** Throws when waiting has become pointless. */
  assertAlive?: (() => void) | undefined;
  /** Whether waiting will not change an answer. */
  isFinal?: (error: unknown) => boolean;
}

/**
 * Calls `probe` until it does not throw, and returns what it has answered. Ends early with the reason when the start is
 * given up or the service has died, and at the deadline with what the last try met.
 */
export async function waitUntil<T>(probe: () => Promise<T>, options: WaitOptions): Promise<T> {
  const { title, report, signal, timeoutMs, progressMs = 10_000, pollMs = 50 } = options;
  const begin = performance.now();
  let toldMs = 0;
  for (;;) {
    signal.throwIfAborted();
    options.assertAlive?.();
    try {
      const answer = await probe();
      signal.throwIfAborted(); // given up while it was asked
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      if (options.isFinal?.(error)) throw error;
      const waitedMs = performance.now() - begin;
      const reason = reasonOf(error);
      if (waitedMs > timeoutMs) {
        throw new StackError(`${title} does not serve after ${formatDuration(waitedMs)}: ${reason}`, { cause: error });
      }
      if (waitedMs - toldMs > progressMs) {
        report(`${title} does not serve yet (${formatDuration(waitedMs)}: ${reason}); waiting …`);
        toldMs = waitedMs;
      }
    }
    await sleep(pollMs, undefined, { signal });
  }
}

/** One line of an error, and of what is at the bottom of it. */
function reasonOf(error: unknown): string {
  const { details, code, cause } = error as { details?: string; code?: unknown; cause?: unknown };
  if (cause != null) return reasonOf(cause);
  const text = details || (error instanceof Error ? error.message : String(error)) || String(code);
  return text.split('\n')[0] ?? '';
}
