import { setTimeout as delay } from 'node:timers/promises';
import { hurry } from './hurry.ts';

const firstIntervalMs = 20;
const longestIntervalMs = 100;
/** After this time the result may need the sweeper. */
const patienceMs = 1_000;

type Absent = undefined | null | false;

/**
 * Calls `look` until it returns a value, and returns that. Throws at the deadline, with `what` in the message. Calls
 * become rarer over time, since each causes work, mostly for the awaited process.
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
