import { DomainError } from '../../../../base/errors.ts';

/** Limits for sandboxes on homes of stopped computers. Their owners do not pay for them. */
export interface FileLimits {
  perHost: number;
  perSpace: number;
  /** How long a request waits for a slot. */
  waitMs: number;
  /** How long a sandbox must be unused before it makes room for another. */
  restMs: number;
}

const mostWaiting = 32;
const lookMs = 250;
const retryAfterSeconds = 5;

interface Taken {
  spaceId: string;
  /** Requests that are about to open the sandbox. */
  opening: number;
  isOpen: boolean;
}

/** A request that waits for a slot. */
interface Waiting {
  spaceId: string;
  wake: () => void;
}

/** Ends the sandbox that has rested longest. Returns false if all are in use. */
type MakeRoom = (computerIds: readonly string[]) => Promise<boolean>;

/**
 * The slots for sandboxes. A computer keeps its slot while its sandbox is open; an unused sandbox makes room for
 * another. A request that finds no slot waits for a moment, and is then told to retry later. A free slot goes to the
 * space with the fewest slots, and there to the oldest request.
 */
export class FilePlaces {
  readonly #limits: FileLimits;
  readonly #makeRoom: MakeRoom;
  readonly #taken = new Map<string, Taken>();
  /** The oldest first. */
  readonly #waiting = new Set<Waiting>();

  constructor(limits: FileLimits, makeRoom: MakeRoom) {
    this.#limits = limits;
    this.#makeRoom = makeRoom;
  }

  /**
   * Takes a slot. The computer's sandbox may be opened until the result is disposed of. Throws 429 or 503 `FILES_BUSY`.
   */
  async take(computerId: string, spaceId: string): Promise<Disposable> {
    const taken = this.#taken.get(computerId) ?? this.#begin(computerId, spaceId);
    if (taken !== undefined) return this.#hold(computerId, taken);
    if (this.#waiting.size >= mostWaiting) throw this.#busy(spaceId);
    const waiting: Waiting = { spaceId, wake: () => undefined };
    this.#waiting.add(waiting);
    try {
      return this.#hold(computerId, await this.#wait(computerId, waiting));
    } finally {
      this.#waiting.delete(waiting);
      this.#wakeAll(); // it may have been ahead of others
    }
  }

  async #wait(computerId: string, waiting: Waiting): Promise<Taken> {
    const { spaceId } = waiting;
    const deadline = performance.now() + this.#limits.waitMs;
    for (;;) {
      const taken = this.#taken.get(computerId) ?? this.#begin(computerId, spaceId, waiting);
      if (taken !== undefined) return taken;
      if (await this.#makeRoom(this.#inTheWay(spaceId))) continue;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw this.#busy(spaceId);
      await this.#change(waiting, Math.min(leftMs, lookMs));
    }
  }

  #hold(computerId: string, taken: Taken): Disposable {
    taken.opening++;
    return {
      [Symbol.dispose]: () => {
        taken.opening--;
        this.#settle(computerId);
      },
    };
  }

  opened(computerId: string): void {
    const taken = this.#taken.get(computerId);
    if (taken !== undefined) taken.isOpen = true;
  }

  closed(computerId: string): void {
    const taken = this.#taken.get(computerId);
    if (taken === undefined) return;
    taken.isOpen = false;
    this.#settle(computerId);
  }

  #begin(computerId: string, spaceId: string, waiting?: Waiting): Taken | undefined {
    if (!this.#hasRoom(spaceId) || this.#isBehind(spaceId, waiting)) return;
    const taken = { spaceId, opening: 0, isOpen: false };
    this.#taken.set(computerId, taken);
    return taken;
  }

  #hasRoom(spaceId: string): boolean {
    return this.#taken.size < this.#limits.perHost && this.#ofSpace(spaceId).length < this.#limits.perSpace;
  }

  /** Whether another waiting request goes first and could take a slot now. A new request comes last in its space. */
  #isBehind(spaceId: string, waiting: Waiting | undefined): boolean {
    const own = this.#ofSpace(spaceId).length;
    let isEarlier = true;
    for (const other of this.#waiting) {
      if (other === waiting) {
        isEarlier = false;
        continue;
      }
      const theirs = this.#ofSpace(other.spaceId).length;
      if (!this.#hasRoom(other.spaceId)) continue;
      if (theirs < own || (theirs === own && isEarlier)) return true;
    }
    return false;
  }

  #settle(computerId: string): void {
    const taken = this.#taken.get(computerId);
    if (taken === undefined || taken.isOpen || taken.opening > 0) return;
    this.#taken.delete(computerId);
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const { wake } of this.#waiting) wake();
  }

  #ofSpace(spaceId: string): string[] {
    return [...this.#taken].filter(([, one]) => one.spaceId === spaceId).map(([id]) => id);
  }

  #inTheWay(spaceId: string): string[] {
    const own = this.#ofSpace(spaceId);
    const all = own.length >= this.#limits.perSpace ? own : [...this.#taken.keys()];
    return all.filter((id) => this.#taken.get(id)?.opening === 0);
  }

  #change(waiting: Waiting, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      waiting.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #busy(spaceId: string): DomainError {
    const isSpaces = this.#ofSpace(spaceId).length >= this.#limits.perSpace;
    const detail = isSpaces
      ? `Files of ${this.#limits.perSpace} computers of this space that do not run are in use. Wake this one, or try again.`
      : 'The host has the most open that it may of computers that do not run. Wake this one, or try again.';
    return new DomainError(isSpaces ? 'rateLimited' : 'unavailable', 'FILES_BUSY', detail, { retryAfterSeconds });
  }
}
