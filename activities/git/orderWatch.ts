import type { Database } from '../../models/database.ts';
import { isCalledOff } from '../../models/git/orders.ts';
import type { Logger } from '../../telemetry/logger.ts';

const intervalMs = 2_000;

/**
 * Looks from time to time whether an order is still to be worked at. Its workflow is told so too, but a process that
 * dies before it tells would leave the work going on to its end.
 */
export class OrderWatch implements Disposable {
  readonly #calledOff = new AbortController();
  readonly #deps: { database: Database; logger: Logger };
  readonly #orderId: string;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(deps: { database: Database; logger: Logger }, orderId: string) {
    this.#deps = deps;
    this.#orderId = orderId;
    this.#lookLater();
  }

  /** Aborted when nobody wants it any more. */
  get signal(): AbortSignal {
    return this.#calledOff.signal;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #lookLater(): void {
    if (!this.#isOver) this.#timer = setTimeout(() => void this.#look(), intervalMs);
  }

  async #look(): Promise<void> {
    try {
      if (await isCalledOff(this.#deps.database, this.#orderId)) return this.#calledOff.abort();
    } catch (error) {
      this.#deps.logger.debug({ err: error, orderId: this.#orderId }, 'Nobody can say whether this was called off.');
    }
    this.#lookLater();
  }
}
