import { findHeld, keepHeld, release } from '../../models/chat/callHolds.ts';
import type { Database } from '../../models/database/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { beatsPerTimeout } from '../keepAlive.ts';
import { Repeated } from './repeated.ts';
import type { CallModelResult } from './stepResult.ts';
import { isStopByWorkflow } from './stopWatch.ts';

/** How often steps that are held elsewhere are looked at, all of them at once. */
const lookIntervalMs = 50;

/** Results that the database has too. With any other one the step is to be taken again. */
const recorded: ReadonlySet<CallModelResult['kind']> = new Set(['answered', 'toolCalls', 'stopped', 'alreadyEnded']);

/**
 * First steps of turns, taken before their workflows ask for them. The workflow may do so in another process: for as
 * long as the one that takes the step says that it lives, that one waits.
 */
export class StepHolds {
  /** How long a step is held after the last sign of life, in milliseconds. */
  readonly holdMs: number;
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #held = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();
  /** As with heartbeats, two of them may be lost. */
  readonly #renewalMs: number;
  readonly #renewing: Repeated;
  readonly #looking: Repeated;
  /** When the database last answered. */
  #answeredAtMs = 0;
  #grace = { ms: 0, untilMs: 0 };

  constructor({ database, logger, holdMs }: { database: Database; logger: Logger; holdMs: number }) {
    this.holdMs = holdMs;
    this.#database = database;
    this.#logger = logger;
    this.#renewalMs = holdMs / beatsPerTimeout;
    this.#renewing = new Repeated({
      everyMs: this.#renewalMs,
      work: () => keepHeld(database, [...this.#held], holdMs),
      onFailure: (error) =>
        logger.warn({ err: error }, 'The model calls that began here could not be kept; trying again.'),
    });
    this.#looking = new Repeated({
      everyMs: lookIntervalMs,
      work: () => this.#look(),
      onFailure: (error) =>
        logger.warn({ err: error }, 'It could not be read which model calls are under way; trying again.'),
    });
  }

  /**
   * Holds the first step of a turn, as its acceptance began to, until its result is known. One that the database does
   * not tell is left there for the process that goes on with the turn, where that is another one.
   */
  async during(
    turnId: string,
    step: Promise<CallModelResult>,
    options: { leavesResult: boolean },
  ): Promise<CallModelResult> {
    this.#held.add(turnId);
    this.#renewing.start();
    let result: CallModelResult | undefined;
    try {
      result = await step;
      return result;
    } finally {
      this.#held.delete(turnId);
      if (this.#held.size === 0) this.#renewing.stop();
      if (result === undefined || !recorded.has(result.kind)) {
        await this.#release(turnId, options.leavesResult ? result : undefined);
      }
    }
  }

  /**
   * Waits while the first step of a turn is held. When the workflow cancels the wait, `stop` is to tell the holder, whose
   * end is still waited for; another reason is thrown.
   */
  async whileHeld(turnId: string, cancelled: AbortSignal, stop: () => Promise<unknown>): Promise<void> {
    const held = await this.#findHeld([turnId]);
    if (!held.has(turnId)) return;
    const { promise: freed, resolve, reject } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(turnId) ?? new Set();
    this.#waiting.set(turnId, waiting.add(resolve));
    this.#looking.start();
    const onAbort = () => {
      if (isStopByWorkflow(cancelled)) stop().catch(reject);
      else reject(cancelled.reason);
    };
    if (cancelled.aborted) onAbort();
    else cancelled.addEventListener('abort', onAbort, { once: true });
    try {
      await freed;
    } finally {
      cancelled.removeEventListener('abort', onAbort);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(turnId);
      if (this.#waiting.size === 0) this.#looking.stop();
    }
  }

  async #look(): Promise<void> {
    const waiting = [...this.#waiting.keys()];
    const held = await this.#findHeld(waiting);
    for (const turnId of waiting) {
      if (!held.has(turnId)) for (const resolve of this.#waiting.get(turnId) ?? []) resolve();
    }
  }

  /**
   * Which of the turns are held. A hold that ran out while the database did not answer counts for as long as a renewal
   * takes: what kept us waiting may have kept its holder from renewing it.
   */
  async #findHeld(turnIds: readonly string[]): Promise<Set<string>> {
    // Where nobody waits, nobody has looked.
    const sinceMs = this.#waiting.size > 0 ? this.#answeredAtMs : performance.now();
    const held = await findHeld(this.#database, turnIds, this.#graceMs());
    const silentMs = performance.now() - sinceMs;
    this.#answeredAtMs = performance.now();
    if (silentMs < this.#renewalMs) return held;
    this.#grace = { ms: silentMs + this.#renewalMs, untilMs: this.#answeredAtMs + this.#renewalMs };
    return findHeld(this.#database, turnIds, this.#graceMs());
  }

  #graceMs(): number {
    return performance.now() < this.#grace.untilMs ? this.#grace.ms : 0;
  }

  async #release(turnId: string, result: CallModelResult | undefined): Promise<void> {
    try {
      await release(this.#database, turnId, result);
    } catch (error) {
      this.#logger.warn({ err: error, turnId }, 'A model call could not be given away; it is free a little later.');
    }
  }
}
