/** The shortest time between two checks. Turns reported in between are checked together. */
const shortestPauseMs = 20;
const pauseAfterFailureMs = 250;

export interface LookScheduleOptions {
  /** The time until everything is checked again. Read before each wait. */
  intervalMs(): number;
  /** Checks these turns, or all that have readers. Rejects if the database does not answer. */
  look(turns: ReadonlySet<string> | 'all'): Promise<void>;
}

/**
 * Schedules the checks of logs with readers: all of them at an interval, and single ones when they are reported to have
 * grown. One check runs at a time.
 */
export class LookSchedule {
  readonly #options: LookScheduleOptions;
  #due: Set<string> | 'all' = new Set();
  #running = false;
  #looking = false;
  #pauseMs = shortestPauseMs;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #next: NodeJS.Timeout | undefined;
  #interval: NodeJS.Timeout | undefined;

  constructor(options: LookScheduleOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#startInterval();
  }

  stop(): void {
    this.#running = false;
    this.#due = new Set();
    clearTimeout(this.#interval);
    clearTimeout(this.#next);
    this.#next = undefined;
  }

  /** Checks everything now, and starts a new interval. */
  restart(): void {
    if (!this.#running) return;
    clearTimeout(this.#interval);
    this.lookAt('all');
    this.#startInterval();
  }

  lookAt(turn: string | 'all'): void {
    if (!this.#running) return;
    if (turn === 'all') this.#due = 'all';
    else if (this.#due !== 'all') this.#due.add(turn);
    this.#lookSoon();
  }

  #startInterval(): void {
    this.#interval = setTimeout(() => {
      this.lookAt('all');
      this.#startInterval();
    }, this.#options.intervalMs());
  }

  #lookSoon(): void {
    if (this.#looking || this.#next !== undefined || !this.#running) return;
    if (this.#due !== 'all' && this.#due.size === 0) return;
    const waitMs = this.#lookedAtMs + this.#pauseMs - performance.now();
    if (waitMs <= 1) return void this.#look();
    this.#next = setTimeout(() => {
      this.#next = undefined;
      void this.#look();
    }, waitMs);
  }

  async #look(): Promise<void> {
    const due = this.#due;
    this.#due = new Set();
    this.#looking = true;
    this.#lookedAtMs = performance.now();
    try {
      await this.#options.look(due);
      this.#pauseMs = shortestPauseMs;
    } catch {
      // `look` has logged it. These turns will not be reported again, so check everything.
      this.#pauseMs = pauseAfterFailureMs;
      this.#due = 'all';
    } finally {
      this.#looking = false;
    }
    this.#lookSoon();
  }
}
