import { orAfter } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';

/** How long a new process of the daemon waits for what an earlier one has asked. */
const mostMs = 30_000;

/**
 * Lets the requests of a daemon that was killed end before those of its next process begin, and refuses those that come
 * after. Otherwise a content that the killed one has sent could be placed later than what was written or removed since.
 */
export class Successions {
  readonly #running = new Map<string, Set<Promise<unknown>>>();
  readonly #retired = new Set<string>();
  #present: string | undefined;

  /** `process` is undefined for a daemon of an older release. */
  async run<Result>(process: string | undefined, work: () => Promise<Result>): Promise<Result> {
    if (process === undefined) return work();
    if (this.#retired.has(process)) throw new DomainError('conflict', 'DAEMON_REPLACED', 'Another process asks now.');
    if (this.#present !== undefined && this.#present !== process) this.#retired.add(this.#present);
    this.#present = process;
    const earlier = [...this.#running].flatMap(([other, works]) => (other === process ? [] : [...works]));
    if (earlier.length > 0) await orAfter(Promise.allSettled(earlier), mostMs, undefined);
    const running = work();
    const own = this.#running.get(process) ?? new Set();
    this.#running.set(process, own.add(running));
    try {
      return await running;
    } finally {
      own.delete(running);
      if (own.size === 0) this.#running.delete(process);
    }
  }
}
