interface PaceLimits {
  perSecond: number;
  /** What may be taken without waiting after a quiet time. */
  atOnce: number;
}

/** Less than this is waited for with the next. */
const shortestWaitMs = 2;

/** How fast something may go on: whoever takes first and waits then is held to the pace, and all who share it together. */
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

  /** Takes, and says how many milliseconds to wait before more is taken. */
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
/** A write of less costs as much as one of this. */
const smallBytes = 16_384;

/** What the processes of one computer may write to their logs. Whoever has written waits, and its process with it. */
export class LogPace {
  /** What goes to disk: a long log at once, then as much as no disk minds. */
  readonly #bytes: Pace;
  /** What somebody reads as it comes leaves the disk again before it has got there. */
  readonly #read: Pace;
  /** Small writes: what comes meanwhile is written together. */
  readonly #writes: Pace;

  constructor(now?: () => number) {
    this.#bytes = new Pace({ perSecond: 16 * mebibyte, atOnce: 64 * mebibyte }, now);
    this.#read = new Pace({ perSecond: 256 * mebibyte, atOnce: 64 * mebibyte }, now);
    this.#writes = new Pace({ perSecond: 250, atOnce: 250 }, now);
  }

  /** How many milliseconds to wait after a write; `isRead`: to a log whose reader keeps up with it. */
  waitMs(bytes: number, isRead = false): number {
    const pace = isRead ? this.#read : this.#bytes;
    return Math.max(pace.take(bytes), this.#writes.take(bytes < smallBytes ? 1 : 0));
  }
}
