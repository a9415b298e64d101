import { lookUntil } from '../../base/async.ts';
import { hurry } from './hurry.ts';

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
  const { timeoutMs = 120_000 } = options;
  const begin = performance.now();
  const lookInHurry = async () => {
    if (performance.now() - begin > patienceMs) await hurry();
    return look();
  };
  const isThere = (seen: T | Absent) => seen !== undefined && seen !== null && seen !== false;
  const found = await lookUntil(lookInHurry, isThere, { firstMs: 20, mostMs: 100, forMs: timeoutMs });
  if (found !== undefined && found !== null && found !== false) return found;
  throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}.`);
}
