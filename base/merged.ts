import { setTimeout as delay } from 'node:timers/promises';

/**
 * Runs one call at a time for each key. Callers that ask during a run share the next run. It begins after they asked,
 * so it sees every change that they know of.
 */
export class Merged<T> {
  readonly #restMs: number;
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<T>>();

  /** At least this time passes between two runs for a key. */
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
