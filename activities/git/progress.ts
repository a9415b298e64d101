import type { GitProgress } from '../../integrations/git/types.ts';
import type { Database } from '../../models/database/database.ts';
import { showProgress } from '../../models/git/repository.ts';
import type { Logger } from '../../telemetry/logger.ts';

const leastIntervalMs = 500;

/**
 * Shows in a repository's row how far it is, one statement after the other and not more often than people look. A
 * repository that nobody wants any more aborts the work.
 */
export class ProgressWriter {
  private latest: GitProgress | undefined;
  private writing: Promise<void> | undefined;
  private writtenAtMs = Number.NEGATIVE_INFINITY;
  private readonly unwanted = new AbortController();
  private readonly deps: { database: Database; logger: Logger };
  private readonly itemId: string;

  constructor(deps: { database: Database; logger: Logger }, itemId: string) {
    this.deps = deps;
    this.itemId = itemId;
  }

  /** Aborted when the repository is gone. */
  get signal(): AbortSignal {
    return this.unwanted.signal;
  }

  readonly show = (progress: GitProgress): void => {
    this.latest = progress;
    if (this.writing !== undefined || performance.now() - this.writtenAtMs < leastIntervalMs) return;
    this.writing = this.write().finally(() => {
      this.writing = undefined;
    });
  };

  /** What is being written is written before the end is, which has none. */
  async settled(): Promise<void> {
    await this.writing;
  }

  private async write(): Promise<void> {
    const { latest, itemId } = this;
    if (latest === undefined) return;
    this.writtenAtMs = performance.now();
    try {
      const { phase, percent, bytes, objects, totalObjects } = latest;
      const isWanted = await showProgress(this.deps.database, itemId, { phase, percent, bytes, objects, totalObjects });
      if (!isWanted) this.unwanted.abort();
    } catch (error) {
      this.deps.logger.debug({ err: error, itemId }, 'The progress of a repository could not be shown.');
    }
  }
}
