import type { GitProgress } from '../../integrations/git/types.ts';
import type { Database } from '../../models/database/database.ts';
import { showProgress } from '../../models/git/repository.ts';
import type { Logger } from '../../telemetry/logger.ts';

const leastIntervalMs = 500;

/** Writes progress to a repository's row: one statement at a time, and at most two a second. */
export class ProgressWriter {
  #latest: GitProgress | undefined;
  #writing: Promise<void> | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  readonly #deps: { database: Database; logger: Logger };
  readonly #itemId: string;

  constructor(deps: { database: Database; logger: Logger }, itemId: string) {
    this.#deps = deps;
    this.#itemId = itemId;
  }

  readonly show = (progress: GitProgress): void => {
    this.#latest = progress;
    if (this.#writing !== undefined || performance.now() - this.#writtenAtMs < leastIntervalMs) return;
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined;
    });
  };

  /** Waits for a pending write, so that the write comes before the end of the step, which clears the progress. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#latest === undefined) return;
    this.#writtenAtMs = performance.now();
    const { phase, percent, bytes, objects, totalObjects } = this.#latest;
    try {
      await showProgress(this.#deps.database, this.#itemId, { phase, percent, bytes, objects, totalObjects });
    } catch (error) {
      const subject = { err: error, itemId: this.#itemId };
      this.#deps.logger.debug(subject, 'The progress of a repository could not be shown.');
    }
  }
}
