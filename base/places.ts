export interface PlaceLimits {
  /** All slots. */
  all: number;
  /** Slots for one owner. Default: `all`. */
  perOwner?: number;
}

interface Waiting {
  begin: () => void;
}

/**
 * Slots for concurrent work in this process, shared fairly. Each owner has at most its limit. A free slot goes to the
 * waiting owners in turn, however much each of them has waiting, and within an owner to the oldest work. Work without
 * an owner is served first come, first served.
 */
export class Places {
  readonly #all: number;
  readonly #perOwner: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** Waiting work by owner, oldest first. The first owner is next. */
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor({ all, perOwner = all }: PlaceLimits) {
    this.#all = all;
    this.#perOwner = perOwner;
  }

  /** Waits for a slot and holds it until disposed. Rejects with the signal's reason if that comes first. */
  async take({ owner = '', signal }: { owner?: string; signal?: AbortSignal } = {}): Promise<Disposable> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      const leave = this.begin(owner, () => {
        signal?.removeEventListener('abort', abort);
        resolve({ [Symbol.dispose]: () => leave() });
      });
    });
  }

  /**
   * Calls `begin` when there is a slot: at once, or on the owner's turn. The returned function frees the slot or stops
   * waiting for one. Calling it again does nothing.
   */
  begin(owner: string, begin: () => void): () => void {
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
    if (this.hasRoom(owner)) waiting.begin();
    else {
      const own = this.#waiting.get(owner) ?? new Set();
      own.add(waiting);
      this.#waiting.set(owner, own);
    }
    return leave;
  }

  /** Whether the owner's work would begin at once. */
  hasRoom(owner: string): boolean {
    return this.#taken < this.#all && this.#ofOwner(owner) < this.#perOwner;
  }

  /** How much work waits, in total and of one owner. */
  waiting(owner: string): { all: number; ofOwner: number } {
    let all = 0;
    for (const own of this.#waiting.values()) all += own.size;
    return { all, ofOwner: this.#waiting.get(owner)?.size ?? 0 };
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
      if (!this.hasRoom(owner)) continue;
      const [next] = own;
      if (next === undefined) continue;
      this.#forget(owner, next);
      // The other owners come first now.
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
