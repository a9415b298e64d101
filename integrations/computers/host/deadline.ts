import { setTimeout as sleep } from 'node:timers/promises';
import { untilAborted } from '../../../base/async.ts';
import { HostError } from './hostErrors.ts';

/** Returns the result of `work`. Rejects if it takes too long or the signal aborts. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number, what: string, signal?: AbortSignal): Promise<T> {
  const late = new AbortController();
  const error = new HostError('TIMED_OUT', `${what} took longer than ${ms / 1_000} s`);
  const timer = setTimeout(() => late.abort(error), ms);
  try {
    return await untilAborted(work, signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Checks `isSo` again and again, every 1 to 50 ms, until it holds. Returns false if it does not hold in time. */
export async function until(isSo: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  const end = performance.now() + ms;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
    if (await isSo()) return true;
    if (performance.now() > end) return false;
    await sleep(waitMs);
  }
}
