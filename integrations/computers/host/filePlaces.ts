import { DomainError } from '../../../models/errors.ts';

/** How many sandboxes may be open on homes of computers that do not run: nobody pays for them. */
export interface FileLimits {
  perHost: number;
  perSpace: number;
  /** How long one that comes when they are all taken waits for a place. */
  waitMs: number;
  /** How long one must not have been used to make room for another. */
  restMs: number;
}

export const usualFileLimits: FileLimits = { perHost: 8, perSpace: 3, waitMs: 5_000, restMs: 1_000 };
/** Of those that run something, which takes more. */
export const usualWorkLimits: FileLimits = { perHost: 4, perSpace: 2, waitMs: 15_000, restMs: 1_000 };
const mostWaiting = 32;
const lookMs = 250;
const retryAfterSeconds = 5;

interface Taken {
  spaceId: string;
  /** Requests that are about to open it. */
  opening: number;
  isOpen: boolean;
}

/** Ends the one of these that has rested longest; false where all are in use. */
export type MakeRoom = (computerIds: readonly string[]) => Promise<boolean>;

/**
 * The places for them. A computer keeps its place for as long as its sandbox is open; one that rests makes room for
 * another. Whoever finds none waits for a moment, and is then told to come again.
 */
export class FilePlaces {
  readonly #limits: FileLimits;
  readonly #makeRoom: MakeRoom;
  readonly #taken = new Map<string, Taken>();
  readonly #waiting = new Set<() => void>();

  constructor(limits: FileLimits, makeRoom: MakeRoom) {
    this.#limits = limits;
    this.#makeRoom = makeRoom;
  }

  /** Until what it gives is disposed of, the computer’s sandbox may be opened. Throws 429 or 503 `FILES_BUSY`. */
  async take(computerId: string, spaceId: string): Promise<Disposable> {
    const deadline = performance.now() + this.#limits.waitMs;
    for (;;) {
      const taken = this.#taken.get(computerId) ?? this.#begin(computerId, spaceId);
      if (taken !== undefined) {
        taken.opening++;
        return {
          [Symbol.dispose]: () => {
            taken.opening--;
            this.#settle(computerId);
          },
        };
      }
      if (await this.#makeRoom(this.#inTheWay(spaceId))) continue;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || this.#waiting.size >= mostWaiting) throw this.#busy(spaceId);
      await this.#change(Math.min(leftMs, lookMs));
    }
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

  #begin(computerId: string, spaceId: string): Taken | undefined {
    if (this.#taken.size >= this.#limits.perHost || this.#ofSpace(spaceId).length >= this.#limits.perSpace) return;
    const taken = { spaceId, opening: 0, isOpen: false };
    this.#taken.set(computerId, taken);
    return taken;
  }

  #settle(computerId: string): void {
    const taken = this.#taken.get(computerId);
    if (taken === undefined || taken.isOpen || taken.opening > 0) return;
    this.#taken.delete(computerId);
    for (const wake of this.#waiting) wake();
  }

  #ofSpace(spaceId: string): string[] {
    return [...this.#taken].filter(([, one]) => one.spaceId === spaceId).map(([id]) => id);
  }

  #inTheWay(spaceId: string): string[] {
    const own = this.#ofSpace(spaceId);
    const all = own.length >= this.#limits.perSpace ? own : [...this.#taken.keys()];
    return all.filter((id) => this.#taken.get(id)?.opening === 0);
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }

  #busy(spaceId: string): DomainError {
    const isSpaces = this.#ofSpace(spaceId).length >= this.#limits.perSpace;
    const detail = isSpaces
      ? `Files of ${this.#limits.perSpace} computers of this space that do not run are in use. Wake this one, or try again.`
      : 'The host reads files of as many computers that do not run as it may. Wake this one, or try again.';
    return new DomainError(isSpaces ? 'rateLimited' : 'unavailable', 'FILES_BUSY', detail, { retryAfterSeconds });
  }
}
