import { setImmediate } from 'node:timers/promises';

/** Work gives way after this many characters, about 10 ms. */
export const sliceLength = 20_000;

/** Called between two slices with the work done since the last call. */
export type Pause = (work: number) => Promise<void>;

let last: Promise<void> = Promise.resolve();

/** One slice for each turn of the event loop, however many pieces of work are in progress. */
function giveWay(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}

/**
 * Does long work on the main thread in slices, so that other work comes in between. The generator yields how many
 * characters it has worked on, and returns the result.
 */
export async function inSlices<Result>(work: Generator<number, Result>, pause: Pause = giveWay): Promise<Result> {
  let done = 0;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    done += step.value;
    if (done < sliceLength) continue;
    await pause(done);
    done = 0;
  }
}

/** Does the same work without a pause. Only for work that is known to be short. */
export function atOnce<Result>(work: Generator<number, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
