import { setTimeout as sleep } from 'node:timers/promises';
import { StackError } from './errors.ts';
import { formatDuration, type Report } from './report.ts';

export interface WaitOptions {
  /** A person's name for the service. Begins a sentence. */
  title: string;
  report: Report;
  signal: AbortSignal;
  timeoutMs: number;
  /** How often to report a long wait. */
  progressMs?: number;
  pollMs?: number;
  /** Throws when further waiting is pointless. */
  assertAlive?: (() => void) | undefined;
  /** Whether an error is final, so that waiting will not help. */
  isFinal?: (error: unknown) => boolean;
}

/**
 * Calls `probe` until it succeeds, and returns its answer. Throws early if the start is given up or the service has
 * died, and at the deadline with the last error.
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
      signal.throwIfAborted(); // given up during the probe
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

/** The first line of the innermost error. */
function reasonOf(error: unknown): string {
  const { details, code, cause } = error as { details?: string; code?: unknown; cause?: unknown };
  if (cause != null) return reasonOf(cause);
  const text = details || (error instanceof Error ? error.message : String(error)) || String(code);
  return text.split('\n')[0] ?? '';
}
