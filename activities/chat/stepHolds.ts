import { findHeld, keepHeld, release } from '../../models/chat/callHolds.ts';
import type { Database } from '../../models/database/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { beatsPerTimeout } from '../keepAlive.ts';
import { Repeated } from './repeated.ts';
import type { CallModelResult } from './stepResult.ts';
import { isStopByWorkflow } from './stopWatch.ts';

/** How often this process checks the steps that other processes hold. One query checks them all. */
const lookIntervalMs = 50;

/** Results that can be read from the database. After any other result, the step must be taken again. */
const recorded: ReadonlySet<CallModelResult['kind']> = new Set(['answered', 'toolCalls', 'stopped', 'alreadyEnded']);

/**
 * The leases of head starts. A process that takes a turn's first step before the workflow asks for it keeps a lease in
 * the row of the model call, and renews it while the process lives. If the workflow runs in another process, that
 * process waits until the lease ends.
 */
export class StepHolds {
  /** How long a lease lasts after its last renewal, in milliseconds. */
  readonly holdMs: number;
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #held = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Two renewals in a row may be lost, as with heartbeats. */
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
        logger.warn({ err: error }, 'The list of running model calls could not be read; trying again.'),
    });
  }

  /**
   * Keeps the lease on a turn's first step until its result is known. The transaction that accepted the message began
   * the lease. With `leavesResult`, a result that cannot be read from the database is left in the row for the process
   * that continues the turn.
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
   * Waits while another process has the lease on the turn's first step. If the workflow cancels the wait, `stop` asks
   * that process to stop, and the step's end is still awaited. Any other reason for the abort is thrown.
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
   * The turns whose first step is under lease. If the database was unreachable, the other processes may have failed to
   * renew their leases too, so leases that ran out meanwhile still count for the length of one renewal.
   */
  async #findHeld(turnIds: readonly string[]): Promise<Set<string>> {
    // Without a waiting step, no earlier check tells when the database last answered.
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
