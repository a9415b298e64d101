interface Lane {
  tail: Promise<unknown>;
  waiting: Set<AbortController>;
}

/** Runs one task at a time for each computer. A task that ends the computer cancels the tasks before it. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  /** Runs `work` after earlier tasks of the computer. With `instead`, cancels those with this reason. */
  async in<T>(computerId: string, work: (signal: AbortSignal) => Promise<T>, instead?: Error): Promise<T> {
    const lane = this.#lanes.get(computerId) ?? { tail: Promise.resolve(), waiting: new Set() };
    this.#lanes.set(computerId, lane);
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
      if (lane.waiting.size === 0) this.#lanes.delete(computerId);
    }
  }

  /** Cancels all tasks with this reason. */
  abort(reason: Error): void {
    for (const { waiting } of this.#lanes.values()) for (const task of waiting) task.abort(reason);
  }

  isBusy(computerId: string): boolean {
    return this.#lanes.has(computerId);
  }

  /** Settles when no task runs or waits. */
  async idle(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all([...this.#lanes.values()].map(({ tail }) => tail));
  }
}
