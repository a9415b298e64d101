interface RepeatedOptions {
  everyMs: number;
  work(): Promise<void>;
  onFailure(error: unknown): void;
}

/**
 * Work that is done at an interval for as long as somebody wants it, and never twice at once. It holds up no end of the
 * process. A failure is told, and the work is done again.
 */
export class Repeated {
  readonly #options: RepeatedOptions;
  #timer: NodeJS.Timeout | undefined;
  #isAtWork = false;

  constructor(options: RepeatedOptions) {
    this.#options = options;
  }

  /** Begins, where it has not begun. */
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
