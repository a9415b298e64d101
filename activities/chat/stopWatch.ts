import { chatModels } from '../../models/chat/models.ts';
import type { Database } from '../../models/database.ts';
import type { Logger } from '../../telemetry/logger.ts';

const intervalMs = 200;

/**
 * Polls the stop flag of the turns that this worker is busy with. Temporal delivers a cancellation with a heartbeat's
 * answer, seconds later; one query for all running turns sees it within a fifth of a second, whichever process set it.
 */
export class StopWatch {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #watched = new Map<string, Set<AbortController>>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(options: { database: Database; logger: Logger }) {
    this.#database = options.database;
    this.#logger = options.logger;
  }

  /** A signal that is aborted when the turn is to stop. Dispose of it when the work is done. */
  watch(turnId: string): { signal: AbortSignal } & Disposable {
    const controller = new AbortController();
    const controllers = this.#watched.get(turnId) ?? new Set();
    this.#watched.set(turnId, controllers.add(controller));
    this.#timer ??= setInterval(() => void this.#look(), intervalMs);
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => this.#forget(turnId, controller),
    };
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      for (const turnId of await chatModels(this.#database).Turn.findStopping([...this.#watched.keys()])) {
        for (const controller of this.#watched.get(turnId) ?? []) controller.abort();
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'The stop flags could not be read; trying again.');
    } finally {
      this.#looking = false;
    }
  }

  #forget(turnId: string, controller: AbortController): void {
    const controllers = this.#watched.get(turnId);
    controllers?.delete(controller);
    if (controllers?.size === 0) this.#watched.delete(turnId);
    if (this.#watched.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}
