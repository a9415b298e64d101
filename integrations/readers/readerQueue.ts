import { DomainError } from '../../base/errors.ts';
import { Places } from '../../base/places.ts';

export interface QueueLimits {
  /** How many documents are read at once. */
  places: number;
  /** How many may wait for a slot, in total and per space. */
  waiting: number;
  waitingOfOne: number;
  /** How long a document may wait for a slot. */
  maxWaitMs: number;
}

/** Hands out slots, one at a time per space, so that one space's documents do not hold up the others. */
export class ReaderQueue {
  readonly #limits: QueueLimits;
  readonly #places: Places;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
    this.#places = new Places({ all: limits.places, perOwner: 1 });
  }

  /**
   * Takes a slot until it is disposed of. Throws 503 `READERS_BUSY` if the queue is full or too slow, or the signal's
   * reason.
   */
  async enter(spaceId: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#places.hasRoom(spaceId)) return this.#places.take({ owner: spaceId });
    const { all, ofOwner } = this.#places.waiting(spaceId);
    if (all >= this.#limits.waiting || ofOwner >= this.#limits.waitingOfOne) throw busy();
    const patience = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.maxWaitMs)]);
    try {
      return await this.#places.take({ owner: spaceId, signal: patience });
    } catch {
      signal.throwIfAborted();
      throw busy();
    }
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
