import { setTimeout as delay } from 'node:timers/promises';

/**
 * Runs one at a time for each key. Whoever asks while it runs shares the next run with all others who do: that begins
 * after they asked, so it knows what they know.
 */
export class Merged<T> {
  readonly #restMs: number;
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<T>>();

  /** Between two runs for a key lies at least this time. */
  constructor({ restMs = 0 }: { restMs?: number } = {}) {
    this.#restMs = restMs;
  }

  run(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running === undefined) return this.#start(key, work);
    const known = this.#next.get(key);
    if (known !== undefined) return known;
    const next = running.then(() => {
      this.#next.delete(key);
      return this.run(key, work);
    });
    this.#next.set(key, next);
    return next;
  }

  #start(key: string, work: () => Promise<T>): Promise<T> {
    const result = work();
    const rest = () => (this.#restMs === 0 ? undefined : delay(this.#restMs, undefined, { ref: false }));
    const over = result.then(rest, rest).then(() => void this.#running.delete(key));
    this.#running.set(key, over);
    return result;
  }
}
