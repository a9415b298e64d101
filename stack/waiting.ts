import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 50;

/** Calls `probe` until it does not throw. Ends early with the reason when the start is given up or the service has died. */
export async function waitUntil(
  probe: () => Promise<void>,
  options: { signal: AbortSignal; timeoutMs: number; assertAlive: () => void },
): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    options.signal.throwIfAborted();
    options.assertAlive();
    try {
      return await probe();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(pollMs, undefined, { signal: options.signal });
  }
}
