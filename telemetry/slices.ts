import { setImmediate } from 'node:timers/promises';

/** After so many characters, work gives way: after some 10 ms. */
export const sliceLength = 20_000;

/** Is called between two slices with the work that was done since the last call. */
export type Pause = (work: number) => Promise<void>;

let last: Promise<void> = Promise.resolve();

/** One slice for each turn of the event loop, however many pieces of work are being done. */
function giveWay(): Promise<void> {
  last = last.then(() => setImmediate());
  return last;
}

/**
 * Does long work of the main thread in slices, so that other work comes in between. The generator yields how many
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

/** Does the same work without a pause. It must be known to be short. */
export function atOnce<Result>(work: Generator<number, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
