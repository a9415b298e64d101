/** So many places for work that this process does at once, first come first served. */
export class Places {
  #free: number;
  /** Those who wait, oldest first. */
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a place, which is taken until it is disposed of. Rejects with the signal's reason if that comes first. */
  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    const stack = new DisposableStack();
    stack.defer(() => this.#giveBack());
    return stack;
  }

  #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = () => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = () => {
      this.#waiting.delete(begin);
      reject(signal.reason);
    };
    this.#waiting.add(begin);
    signal.addEventListener('abort', leave, { once: true });
    return promise;
  }

  /** Whoever has waited longest gets it, before anybody who comes now. */
  #giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
