import { CancelledFailure } from '@temporalio/activity';
import { chatModels } from '../../models/chat/models.ts';
import type { Database } from '../../models/database/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Repeated } from './repeated.ts';

const intervalMs = 200;

/**
 * Polls the stop flag of the turns that this worker is busy with. Temporal delivers a cancellation only with the answer
 * to a heartbeat, seconds later; one query for all running turns sees a stop within a fifth of a second.
 */
export class StopWatch {
  readonly #database: Database;
  readonly #watched = new Map<string, Set<AbortController>>();
  readonly #looking: Repeated;

  constructor({ database, logger }: { database: Database; logger: Logger }) {
    this.#database = database;
    this.#looking = new Repeated({
      everyMs: intervalMs,
      work: () => this.#look(),
      onFailure: (error) => logger.warn({ err: error }, 'The stop flags could not be read; trying again.'),
    });
  }

  /** A signal that is aborted when the turn must stop. Dispose of it when the work is done. */
  watch(turnId: string): { signal: AbortSignal } & Disposable {
    const controller = new AbortController();
    const controllers = this.#watched.get(turnId) ?? new Set();
    this.#watched.set(turnId, controllers.add(controller));
    this.#looking.start();
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => this.#forget(turnId, controller),
    };
  }

  async #look(): Promise<void> {
    for (const turnId of await chatModels(this.#database).Turn.findStopping([...this.#watched.keys()])) {
      for (const controller of this.#watched.get(turnId) ?? []) controller.abort();
    }
  }

  #forget(turnId: string, controller: AbortController): void {
    const controllers = this.#watched.get(turnId);
    controllers?.delete(controller);
    if (controllers?.size === 0) this.#watched.delete(turnId);
    if (this.#watched.size === 0) this.#looking.stop();
  }
}

/**
 * Whether the workflow cancelled the activity, which means that the turn must stop. When a worker shuts down, the
 * activity is cancelled too, and another worker continues the turn.
 */
export function isStopByWorkflow(cancelled: AbortSignal): boolean {
  return cancelled.aborted && cancelled.reason instanceof CancelledFailure && cancelled.reason.message === 'CANCELLED';
}
