import { randomInt } from 'node:crypto';

/** Whole numbers from `min` to below `max`, like `randomInt` of node:crypto. */
export type RandomInt = (min: number, max: number) => number;

/**
 * Reproducible random numbers. The seed is printed, and `ATRIUM_TEST_SEED` repeats the sequence. Other processes may
 * still behave differently.
 */
export function seededRandom(name: string): RandomInt {
  const seed = Number(process.env.ATRIUM_TEST_SEED ?? randomInt(2 ** 32));
  process.stdout.write(`${name}: ATRIUM_TEST_SEED=${seed}\n`);
  return randomOf(seed);
}

export function randomOf(seed: number): RandomInt {
  let state = seed >>> 0;
  // Mulberry32, good enough to choose moments.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return (min, max) => min + Math.floor(next() * (max - min));
}
