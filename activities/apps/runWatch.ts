import { isUnwanted } from '../../models/apps/steps.ts';
import type { Database } from '../../models/database.ts';
import type { Logger } from '../../telemetry/logger.ts';

const intervalMs = 1_000;

/** Looks from time to time whether a run is still wanted: its row says so, whoever has died since. */
export class RunWatch implements Disposable {
  readonly #unwanted = new AbortController();
  readonly #deps: { database: Database; logger: Logger };
  readonly #runId: string;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(deps: { database: Database; logger: Logger }, runId: string) {
    this.#deps = deps;
    this.#runId = runId;
    this.#lookLater();
  }

  /** Aborted when nobody wants it any more. */
  get signal(): AbortSignal {
    return this.#unwanted.signal;
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
      if (await isUnwanted(this.#deps.database, this.#runId)) return this.#unwanted.abort();
    } catch (error) {
      this.#deps.logger.debug({ err: error, runId: this.#runId }, 'Nobody can say whether this run is wanted.');
    }
    this.#lookLater();
  }
}
