import type { Logger } from '../telemetry/logger.ts';

interface Options {
  logger: Logger;
  /** Names the work in the log. */
  subject: Record<string, string>;
  intervalMs: number;
}

/**
 * Checks the row from time to time whether work is still wanted. A process that calls the work off also tells its
 * workflow, but may die before that, and then the work would go on to its end.
 */
export class UnwantedWatch implements Disposable {
  readonly #unwanted = new AbortController();
  readonly #isUnwanted: () => Promise<boolean>;
  readonly #options: Options;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(isUnwanted: () => Promise<boolean>, options: Options) {
    this.#isUnwanted = isUnwanted;
    this.#options = options;
    this.#lookLater();
  }

  /** Aborted when the work is no longer wanted. */
  get signal(): AbortSignal {
    return this.#unwanted.signal;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #lookLater(): void {
    if (!this.#isOver) this.#timer = setTimeout(() => void this.#look(), this.#options.intervalMs);
  }

  async #look(): Promise<void> {
    try {
      if (await this.#isUnwanted()) return this.#unwanted.abort();
    } catch (error) {
      this.#options.logger.debug(
        { err: error, ...this.#options.subject },
        'It could not be checked whether this is still wanted.',
      );
    }
    this.#lookLater();
  }
}
