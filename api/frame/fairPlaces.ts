/** How much is worked on at once. */
export interface FairLimits {
  /** Of all owners together. */
  all: number;
  perOwner: number;
}

interface Waiting {
  begin: () => void;
}

/**
 * Places for work, shared fairly: an owner has so many at most, and one that becomes free goes to the owners that wait in
 * turn, however much each of them has waiting.
 */
export class FairPlaces {
  readonly #limits: FairLimits;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** Those that wait, by owner, oldest first. The owner whose turn is next is the first. */
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  /**
   * Calls `begin` when there is a place: at once, or when it is the owner's turn. What is returned gives the place back, or
   * stops waiting for one; calling it again does nothing.
   */
  take(owner: string, begin: () => void): () => void {
    let isOver = false;
    let hasPlace = false;
    const waiting: Waiting = {
      begin: () => {
        hasPlace = true;
        this.#taken++;
        this.#takenBy.set(owner, this.#ofOwner(owner) + 1);
        begin();
      },
    };
    const leave = () => {
      if (isOver) return;
      isOver = true;
      if (hasPlace) this.#giveBack(owner);
      else this.#forget(owner, waiting);
    };
    if (this.#hasRoom(owner)) waiting.begin();
    else {
      const own = this.#waiting.get(owner) ?? new Set();
      own.add(waiting);
      this.#waiting.set(owner, own);
    }
    return leave;
  }

  #hasRoom(owner: string): boolean {
    return this.#taken < this.#limits.all && this.#ofOwner(owner) < this.#limits.perOwner;
  }

  #ofOwner(owner: string): number {
    return this.#takenBy.get(owner) ?? 0;
  }

  #giveBack(owner: string): void {
    this.#taken--;
    const left = this.#ofOwner(owner) - 1;
    if (left > 0) this.#takenBy.set(owner, left);
    else this.#takenBy.delete(owner);
    this.#beginNext();
  }

  #beginNext(): void {
    for (const [owner, own] of this.#waiting) {
      if (!this.#hasRoom(owner)) continue;
      const [next] = own;
      if (next === undefined) continue;
      this.#forget(owner, next);
      // The others come first now.
      const rest = this.#waiting.get(owner);
      if (rest !== undefined) {
        this.#waiting.delete(owner);
        this.#waiting.set(owner, rest);
      }
      next.begin();
      return;
    }
  }

  #forget(owner: string, waiting: Waiting): void {
    const own = this.#waiting.get(owner);
    if (own?.delete(waiting) && own.size === 0) this.#waiting.delete(owner);
  }
}
