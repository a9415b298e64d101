interface RepeatedOptions {
  everyMs: number;
  work(): Promise<void>;
  onFailure(error: unknown): void;
}

/**
 * Repeats work at an interval while it is started, never two runs at once. It does not keep the process alive. A failed
 * run is reported and the next one tries again.
 */
export class Repeated {
  readonly #options: RepeatedOptions;
  #timer: NodeJS.Timeout | undefined;
  #isAtWork = false;

  constructor(options: RepeatedOptions) {
    this.#options = options;
  }

  /** Starts the interval, unless it has been started. */
  start(): void {
    this.#timer ??= setInterval(() => void this.#work(), this.#options.everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #work(): Promise<void> {
    if (this.#isAtWork) return;
    this.#isAtWork = true;
    try {
      await this.#options.work();
    } catch (error) {
      this.#options.onFailure(error);
    } finally {
      this.#isAtWork = false;
    }
  }
}
