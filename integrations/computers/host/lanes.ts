import { untilAborted } from '../../../base/async.ts';

interface Lane {
  tail: Promise<unknown>;
  waiting: Set<AbortController>;
}

/** Runs one task at a time for each computer, or for another id. A task that ends it cancels the tasks before it. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Runs `work` after earlier tasks with this id. With `instead`, cancels those with this reason. */
  async in<T>(id: string, work: (signal: AbortSignal) => Promise<T>, instead?: Error): Promise<T> {
    const lane = this.#lanes.get(id) ?? { tail: Promise.resolve(), waiting: new Set() };
    this.#lanes.set(id, lane);
    if (instead !== undefined) for (const earlier of lane.waiting) earlier.abort(instead);
    const breakOff = new AbortController();
    lane.waiting.add(breakOff);
    const result = lane.tail.then(() => {
      breakOff.signal.throwIfAborted();
      return work(breakOff.signal);
    });
    lane.tail = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      lane.waiting.delete(breakOff);
      if (lane.waiting.size === 0) this.#lanes.delete(id);
    }
  }

  /** As `in`, with a signal that cancels the work, and also ends the wait for earlier tasks. */
  async until<T>(id: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    let hasBegun = false;
    const done = this.in(id, (own) => {
      signal.throwIfAborted();
      hasBegun = true;
      return work(AbortSignal.any([own, signal]));
    });
    return untilAborted(done, signal).catch((error: unknown) => {
      if (hasBegun) return done;
      throw error;
    });
  }

  /** Cancels all tasks with this reason. */
  abort(reason: Error): void {
    for (const { waiting } of this.#lanes.values()) for (const task of waiting) task.abort(reason);
  }

  isBusy(id: string): boolean {
    return this.#lanes.has(id);
  }

  /** Settles when no task runs or waits. */
  async idle(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all([...this.#lanes.values()].map(({ tail }) => tail));
  }
}
