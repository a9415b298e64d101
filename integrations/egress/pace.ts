/**
 * Lets a burst through, and then `perSecond`: a program in a loop must not fill the space's log. Faster requests wait,
 * and are refused if the wait would be long.
 */
export class Pace {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #maxWaitMs: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  constructor(burst: number, perSecond: number, maxWaitMs = 5_000, now = Date.now) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#maxWaitMs = maxWaitMs;
    this.#now = now;
    this.#left = burst;
    this.#at = now();
  }

  /** Returns how long to wait, in milliseconds; undefined if that is too long. */
  take(): number | undefined {
    this.#fill();
    const waitMs = Math.max(0, Math.ceil(((1 - this.#left) * 1000) / this.#perSecond));
    if (waitMs > this.#maxWaitMs) return undefined;
    this.#left -= 1;
    return waitMs;
  }

  /** Whether it is as at the beginning: nothing is left of what was taken. */
  isFull(): boolean {
    this.#fill();
    return this.#left === this.#burst;
  }

  #fill(): void {
    const now = this.#now();
    this.#left = Math.min(this.#burst, this.#left + (Math.max(0, now - this.#at) * this.#perSecond) / 1000);
    this.#at = now;
  }
}
