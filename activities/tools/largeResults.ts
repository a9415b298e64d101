import { Places } from '../../base/places.ts';

/** How many large results one process holds in memory at a time. A space may hold one of them. */
const places = 2;
/** How long a result may take to arrive once it has a place: a slow server must not block the others. */
const longestMs = 60_000;

/** A call's permit for a large result, until it is disposed of. */
export interface LargeResultTicket extends Disposable {
  /** Waits for a place, unless the call already has one. Throws the signal's reason. */
  admit(signal: AbortSignal): Promise<void>;
  /** Aborted when the result takes too long. */
  overdue: AbortSignal;
}

/**
 * Limits a worker's memory if many calls have large results at once: results of 100 MB are read, redacted and stored
 * one after the other, while small ones pass.
 */
export class LargeResults {
  readonly #places = new Places({ all: places, perOwner: 1 });

  ticket(spaceId: string): LargeResultTicket {
    const overdue = new AbortController();
    let place: Disposable | undefined;
    let timer: NodeJS.Timeout | undefined;
    return {
      overdue: overdue.signal,
      admit: async (signal) => {
        if (place !== undefined) return;
        place = await this.#places.take({ owner: spaceId, signal });
        timer = setTimeout(() => overdue.abort(), longestMs);
      },
      [Symbol.dispose]() {
        clearTimeout(timer);
        place?.[Symbol.dispose]();
      },
    };
  }
}
