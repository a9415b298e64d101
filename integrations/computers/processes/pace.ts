interface PaceLimits {
  perSecond: number;
  /** How much may be taken without waiting after a quiet time. */
  atOnce: number;
}

/** A shorter wait is added to the next one. */
const shortestWaitMs = 2;

/** Limits a rate: callers take first and then wait. All callers of one instance are limited together. */
export class Pace {
  readonly #limits: PaceLimits;
  readonly #now: () => number;
  #left: number;
  #at: number;

  constructor(limits: PaceLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
    this.#left = limits.atOnce;
    this.#at = now();
  }

  /** Takes an amount, and returns how many milliseconds to wait before taking more. */
  take(amount: number): number {
    const { perSecond, atOnce } = this.#limits;
    const now = this.#now();
    this.#left = Math.min(atOnce, this.#left + ((now - this.#at) / 1_000) * perSecond) - amount;
    this.#at = now;
    const waitMs = (-this.#left / perSecond) * 1_000;
    return waitMs < shortestWaitMs ? 0 : waitMs;
  }
}

const mebibyte = 1_048_576;
/** Smaller writes also count against the limit for small writes. */
const smallBytes = 16_384;

/**
 * The pace at which the processes of one computer may write to their logs. A fast writer waits, and its process with
 * it.
 */
export class LogPace {
  /** Limit for writes to the disk: a long log at once, then as much as any disk can take. */
  readonly #bytes: Pace;
  /** Limit for output that is read at once. It leaves the cache before it reaches the disk. */
  readonly #read: Pace;
  /** Limit for small writes. Output that comes meanwhile is written together. */
  readonly #writes: Pace;

  constructor(now?: () => number) {
    this.#bytes = new Pace({ perSecond: 16 * mebibyte, atOnce: 64 * mebibyte }, now);
    this.#read = new Pace({ perSecond: 256 * mebibyte, atOnce: 64 * mebibyte }, now);
    this.#writes = new Pace({ perSecond: 250, atOnce: 250 }, now);
  }

  /** How many milliseconds to wait after a write. `isRead`: the log's readers keep up. */
  waitMs(bytes: number, isRead = false): number {
    const pace = isRead ? this.#read : this.#bytes;
    return Math.max(pace.take(bytes), this.#writes.take(bytes < smallBytes ? 1 : 0));
  }
}
