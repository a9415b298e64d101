import { setTimeout as delay } from 'node:timers/promises';
import { hurry } from './hurry.ts';

const firstIntervalMs = 20;
const longestIntervalMs = 100;
/** What has not come by then may need the sweeper. */
const patienceMs = 1_000;

type Absent = undefined | null | false;

/**
 * Looks again and again until `look` gives something, and returns it. Fails by itself at the deadline, with `what` in
 * the message, so that a test says what it was waiting for. What has taken long already is looked at less often: each
 * look is work, mostly for the one who is waited for.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Absent | Promise<T | Absent>,
  options: { timeoutMs?: number } = {},
): Promise<T> {
  const { timeoutMs = 60_000 } = options;
  const begin = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    const waitedMs = performance.now() - begin;
    if (waitedMs > timeoutMs) throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}.`);
    if (waitedMs > patienceMs) await hurry();
    await delay(Math.min(Math.max(firstIntervalMs, waitedMs / 10), longestIntervalMs));
  }
}
