import { DomainError } from '../../base/errors.ts';

export interface QueueLimits {
  /** How many documents are read at once. */
  places: number;
  /** How many may wait for a place, in total and per space. */
  waiting: number;
  waitingOfOne: number;
  /** How long one waits for a place. */
  maxWaitMs: number;
}

interface Waiting {
  spaceId: string;
  begin(): void;
}

/** Hands out places, one at a time per space, so that one space's documents do not hold up the others. */
export class ReaderQueue {
  readonly #limits: QueueLimits;
  readonly #held = new Set<string>();
  readonly #waiting: Waiting[] = [];

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /**
   * A place, until it is disposed of. Throws 503 `READERS_BUSY` where the queue is full or too slow, or the signal's
   * reason.
   */
  async enter(spaceId: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const { waiting, waitingOfOne, maxWaitMs } = this.#limits;
    if (!this.#isFree(spaceId)) {
      const ofOne = this.#waiting.filter((other) => other.spaceId === spaceId).length;
      if (this.#waiting.length >= waiting || ofOne >= waitingOfOne) throw busy();
      await this.#wait(spaceId, AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)])).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    } else this.#held.add(spaceId);
    return {
      [Symbol.dispose]: () => {
        this.#held.delete(spaceId);
        this.#next();
      },
    };
  }

  #wait(spaceId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(busy());
      };
      const waiting: Waiting = {
        spaceId,
        begin() {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiting);
    });
  }

  #next(): void {
    for (const waiting of [...this.#waiting]) {
      if (!this.#isFree(waiting.spaceId)) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      this.#held.add(waiting.spaceId);
      waiting.begin();
    }
  }

  #isFree(spaceId: string): boolean {
    return this.#held.size < this.#limits.places && !this.#held.has(spaceId);
  }
}

function busy(): DomainError {
  return new DomainError(
    'unavailable',
    'READERS_BUSY',
    'Atrium is reading as many documents as it can at a time. Try again in a minute.',
    { retryAfterSeconds: 60 },
  );
}
