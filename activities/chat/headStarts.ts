import { setTimeout as delay } from 'node:timers/promises';
import type { ChatSettings } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ChatDeps } from './deps.ts';
import { runStep, type StepOptions, type TurnAsMade } from './runStep.ts';
import type { StepHolds } from './stepHolds.ts';
import type { CallModelInput, CallModelResult } from './stepResult.ts';

/** A model call under way in this process. */
export interface StepRun {
  result: Promise<CallModelResult>;
  /** Resolves when the model is being called; never if the call fails before. */
  asked: Promise<void>;
  /** Resolves when the model's first output is visible; never if there is none. */
  shown: Promise<void>;
  /** Whether the model is being called, or has been. */
  isAsked(): boolean;
  /** Aborts it with `reason`. */
  cancel(reason: unknown): void;
}

/** Takes one step of a turn, like the activity `callModel`. */
export type TakeStep = (input: CallModelInput, options: StepOptions) => Promise<CallModelResult>;

/**
 * The longest delays of the workflow's start, in milliseconds: until the model is called, and then until its first
 * words are visible.
 */
const longestLeadMs = 300;
const firstWordsMs = 100;

/**
 * How long the result of an ended call is kept in memory for its activity. Later activities read it from the database.
 */
const keptMs = 60_000;

/**
 * Runs the first model call of new turns before their workflows ask for it.
 *
 * When a message is accepted, its turn is already in the database, so this process calls the model at once, while
 * Temporal starts the workflow. The workflow's first task then waits for that call (`awaitHeadStart`). If the workflow
 * runs in another process, that process waits as long as this one keeps renewing its lease on the step (`StepHolds`).
 * Without a head start, the workflow's first task makes the call itself.
 *
 * Correctness does not depend on head starts. If this process dies, another attempt fences its call off, like that of
 * any lost worker.
 */
export class HeadStarts {
  readonly #logger: Logger;
  readonly #takeStep: TakeStep;
  readonly #holds: StepHolds;
  readonly #leavesResults: boolean;
  readonly #runs = new Map<string, StepRun>();
  #isOpen = true;
  readonly #takeHeld: TakeStep = (input, options) =>
    this.#holds.during(input.turnId, this.#takeStep(input, options), { leavesResult: this.#leavesResults });

  /** `leavesResults`: the workflows of the turns that begin here run in other processes. */
  constructor(options: { logger: Logger; takeStep: TakeStep; holds: StepHolds; leavesResults: boolean }) {
    this.#logger = options.logger;
    this.#takeStep = options.takeStep;
    this.#holds = options.holds;
    this.#leavesResults = options.leavesResults;
  }

  /** How long other processes leave a step alone after the last renewal of its head start, in milliseconds. */
  get holdMs(): number {
    return this.#holds.holdMs;
  }

  /**
   * Begins the first step of a turn that has just been created: no other attempt at it can exist. Returns when the
   * turn's workflow should be started: starting it earlier would compete for CPU and disk, and delay the first words.
   */
  async begin(turn: Turn, settings: ChatSettings): Promise<void> {
    const { id: turnId, modelId } = turn;
    if (!this.#isOpen) return;
    const input = { turnId, step: 0, modelId };
    const run = this.#begin(input, { turn, settings });
    await Promise.race([underWay(run), run.result, timer(longestLeadMs)]).catch(() => undefined);
  }

  /**
   * The result of the turn's first call, if it ends successfully within `forMs`. Begins the call if it is not running
   * in this process. The result is handed out once. When `signal` is aborted, another worker waits instead, so this
   * process gives up a call that has not reached the model yet. The signal looks the same when the user stops the turn;
   * the turn's row tells the two apart.
   */
  async soon(input: CallModelInput, forMs: number, signal: AbortSignal): Promise<CallModelResult | undefined> {
    if (!this.#isOpen) return undefined;
    const run = this.#runs.get(keyOf(input)) ?? this.#begin(input);
    const onAbort = () => {
      if (!run.isAsked()) run.cancel(new Error('Nothing in this process waits for this model call any more.'));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    const patience = delay(forMs, undefined, { ref: false, signal });
    const result = await Promise.race([run.result, patience]).catch(() => undefined);
    signal.removeEventListener('abort', onAbort);
    if (result !== undefined) this.#runs.delete(keyOf(input));
    return result;
  }

  #begin(input: CallModelInput, asMade?: TurnAsMade): StepRun {
    const key = keyOf(input);
    // Only the process that accepted the message holds the turn's first step.
    const isHeld = asMade !== undefined && asMade.turn.writerEpoch > 0;
    const run = beginStep(isHeld ? this.#takeHeld : this.#takeStep, input, asMade);
    this.#runs.set(key, run);
    const forget = () => void setTimeout(() => this.#runs.delete(key), keptMs).unref();
    run.result.then(forget, (error: unknown) => {
      const { turnId } = input;
      this.#logger.warn({ err: error, turnId }, 'A first model call has failed; its activity tries again.');
      forget();
    });
    return run;
  }

  /** The head start of this activity's call, if this process has one. It is handed out once. */
  take(input: CallModelInput): StepRun | undefined {
    const key = keyOf(input);
    const run = this.#runs.get(key);
    this.#runs.delete(key);
    return run;
  }

  /** Begins no more calls, waits `graceMs` for those that run, then aborts those that no activity has taken over. */
  async close(graceMs = 0): Promise<void> {
    this.#isOpen = false;
    const runs = [...this.#runs.values()];
    const ended = Promise.allSettled(runs.map(({ result }) => result));
    if (graceMs > 0) await Promise.race([ended, timer(graceMs)]);
    this.#runs.clear();
    for (const run of runs) run.cancel(new Error('This process is stopping.'));
    await ended;
  }
}

/** The head starts of this process. */
export function createHeadStarts(deps: ChatDeps, { leavesResults = false } = {}): HeadStarts {
  const { logger, stepHolds: holds } = deps;
  return new HeadStarts({ logger, holds, leavesResults, takeStep: (input, options) => runStep(deps, input, options) });
}

function beginStep(takeStep: TakeStep, input: CallModelInput, asMade: TurnAsMade | undefined): StepRun {
  const abandon = new AbortController();
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  let isAsked = false;
  const onAsked = () => {
    isAsked = true;
    resolve();
  };
  const { promise: shown, resolve: onShown } = Promise.withResolvers<void>();
  return {
    result: takeStep(input, { cancelled: abandon.signal, progress: { onAsked, onShown }, ...(asMade && { asMade }) }),
    asked,
    shown,
    isAsked: () => isAsked,
    cancel: (reason) => abandon.abort(reason),
  };
}

async function underWay({ asked, shown }: StepRun): Promise<void> {
  await asked;
  await Promise.race([shown, timer(firstWordsMs)]);
}

function timer(ms: number): Promise<void> {
  return delay(ms, undefined, { ref: false });
}

function keyOf({ turnId, step, modelId, squeeze = 0 }: CallModelInput): string {
  return [turnId, step, modelId, squeeze].join('\n');
}
