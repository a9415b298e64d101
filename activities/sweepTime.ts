import { AsyncLocalStorage } from 'node:async_hooks';
import type { SweepPosition } from '../models/sweeping/sweepRounds.ts';

/** The time that one sweep has in one round, and where it continues in lists that the round does not finish. */
export interface SweepTime {
  /** Aborts when the time is used up, with {@link OutOfTime}, and when the round is cancelled. */
  readonly signal: AbortSignal;
  /** Aborts only when the round is cancelled. For a row that may take longer than the time. */
  readonly cancelled: AbortSignal;
  /** Where the sweep stopped in each of its lists, by the list's name. */
  readonly positions: Map<string, SweepPosition>;
}

/** A sweep has used up its time. The next round continues where it stopped. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime';
}

/** The time of the running sweep. Undefined in an activity that is not part of a round. */
export const sweepTime = new AsyncLocalStorage<SweepTime>();
