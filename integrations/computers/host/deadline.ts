import { setTimeout as sleep } from 'node:timers/promises';
import { HostError } from './hostErrors.ts';

/** Returns the result of `work`. Rejects if it takes too long or the signal aborts. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number, what: string, signal?: AbortSignal): Promise<T> {
  const ended = new AbortController();
  try {
    return await Promise.race([
      work,
      sleep(ms, undefined, { signal: ended.signal }).then(() => {
        throw new HostError('TIMED_OUT', `${what} took longer than ${ms / 1_000} s`);
      }),
      aborted(ended.signal, signal),
    ]);
  } finally {
    ended.abort();
    work.catch(() => undefined);
  }
}

async function aborted(ended: AbortSignal, signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(signal?.reason);
    if (signal?.aborted === true) return refuse();
    signal?.addEventListener('abort', refuse, { once: true });
    ended.addEventListener('abort', () => signal?.removeEventListener('abort', refuse), { once: true });
  });
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
