import { setTimeout as delay } from 'node:timers/promises';

type Absent = undefined | null | false;

/**
 * Looks again and again until `look` gives something, and returns it. Fails by itself at the deadline, with `what` in
 * the message, so that a test says what it was waiting for.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Absent | Promise<T | Absent>,
  options: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<T> {
  const { timeoutMs = 60_000, intervalMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}.`);
    await delay(intervalMs);
  }
}
