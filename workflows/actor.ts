import {
  ActivityFailure,
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';

/*
 * Computers, desktops, recordings, browsers, repositories, runs of apps, databases and webhook endpoints are *actors*.
 * An actor has a row with its wanted and its actual state. While there is something to do, it also has a workflow:
 *
 * - A request writes the wanted state into the row, and then *tells* the workflow that the row has changed. The signal
 *   carries nothing else. It starts the workflow if none runs (`tell` in temporal/launcherKit.ts).
 * - The workflow *looks*: an activity reads the row and decides what comes next. A repeated look gives the same answer.
 * - `rest`: nothing is left to do, and the workflow ends.
 * - `watch`: the workflow waits until it is told, for `waitMs` at most, and looks again.
 * - Anything else is a *step*: an activity changes the world and the row. Then the workflow looks again.
 * - An *interruption* also asks the step under way to stop.
 * - The sweeper tells every actor whose row has been waiting for a while, in case a signal was lost (`sweepActors` in
 *   activities/sweepEach.ts).
 */

/** The row has changed. */
export const changedSignal = defineSignal('changed');
/** The row has changed, and the step under way may no longer be wanted. */
export const interruptedSignal = defineSignal('interrupted');
/** What the actor does now, for an operator in the Temporal UI. */
export const stepQuery = defineQuery<string>('step');

/** The start input of every actor's workflow, beside the row's id. */
export interface ActorInput {
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

type Idle = { do: 'rest' } | { do: 'watch'; waitMs: number };
/** The members of `Next` that are steps. */
export type WorkOf<Next extends { do: string }> = Exclude<Next, Idle>;
/** The step of this name. */
type StepOf<Next, Name> = Next extends { do: infer Do } ? (Name extends Do ? Next : never) : never;

interface Actor<Next extends { do: string }> {
  /** Decides by the row what comes next. */
  look(): Promise<Next>;
  steps: { [Name in WorkOf<Next>['do']]: (step: StepOf<Next, Name>) => Promise<unknown> };
  /** Records the end of a step. No `code` means success. */
  ended?(step: WorkOf<Next>, code: string | undefined): Promise<unknown>;
  /** How long to wait after a failed step, unless the actor is told, in milliseconds. `failures` counts those in a row. */
  pauseMs?(step: WorkOf<Next>, failures: number): number;
  interruption?: {
    /** The code of a step that was interrupted. */
    code: string;
    /** Whether the interruption that has just come is for this step. */
    isFor(step: WorkOf<Next>): boolean | Promise<boolean>;
  };
}

/** How often an actor was told, and how many of these were interruptions. */
interface News {
  told: number;
  interruptions: number;
}

/** Runs an actor until it rests, and returns its last look. */
export async function live<Next extends { do: string }>(
  input: { maxHistoryEvents: number },
  actor: Actor<Next>,
): Promise<Exclude<Next, WorkOf<Next> | { do: 'watch' }>> {
  const news: News = { told: 0, interruptions: 0 };
  let doing = 'rest';
  let failures = 0;
  setHandler(stepQuery, () => doing);
  setHandler(changedSignal, () => void news.told++);
  setHandler(interruptedSignal, () => {
    news.told++;
    news.interruptions++;
  });
  for (;;) {
    const seen = { ...news };
    const untilTold = (ms: number) => (ms > 0 ? condition(() => news.told > seen.told, ms) : undefined);
    const next = await actor.look();
    doing = next.do;
    if (isRest(next)) {
      if (news.told === seen.told) return next;
    } else if (isWatch(next)) {
      await untilTold(next.waitMs);
    } else if (news.interruptions === seen.interruptions) {
      // If an interruption came during the look, the row may have changed: look again before any step.
      const step = next as WorkOf<Next>;
      const code = await take(actor, step, news);
      await actor.ended?.(step, code);
      failures = code === undefined ? 0 : failures + 1;
      if (failures > 0) await untilTold(actor.pauseMs?.(step, failures) ?? 0);
    }
    if (isHistoryFull(input)) {
      await condition(allHandlersFinished);
      await continueAsNew<(again: typeof input) => Promise<void>>(input);
    }
  }
}

function isRest<Next extends { do: string }>(next: Next): next is Exclude<Next, WorkOf<Next> | { do: 'watch' }> {
  return next.do === 'rest';
}

function isWatch<Next extends { do: string }>(next: Next): next is Next & { waitMs: number } {
  return next.do === 'watch';
}

/** Takes a step. Returns the code with which it failed, or undefined if it succeeded. */
async function take<Next extends { do: string }>(
  { steps, interruption }: Actor<Next>,
  step: WorkOf<Next>,
  news: News,
): Promise<string | undefined> {
  const act = steps[step.do as WorkOf<Next>['do']];
  const whole = CancellationScope.current();
  const scope = new CancellationScope();
  let isOver = false;
  async function watch(): Promise<void> {
    for (let seen = news.interruptions; ; ) {
      await condition(() => isOver || news.interruptions > seen);
      if (isOver) return;
      seen = news.interruptions;
      if (await interruption?.isFor(step)) return scope.cancel();
    }
  }
  const watching = CancellationScope.nonCancellable(watch);
  try {
    return await codeOf(scope.run(() => act(step as never)));
  } catch (error) {
    if (!isCancellation(error) || interruption === undefined || whole.consideredCancelled) throw error;
    return interruption.code;
  } finally {
    isOver = true;
    await watching;
  }
}

/** The code with which an activity failed for good; undefined if it succeeded. Cancellations are thrown. */
export async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    // Other errors are our bugs: the workflow task is retried until they are fixed.
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    const { cause } = error;
    return cause instanceof ApplicationFailure && cause.type ? cause.type : 'TIMED_OUT';
  }
}

/** Whether a workflow should continue in a new run: its history is as long as allowed, or the server suggests it. */
export function isHistoryFull({ maxHistoryEvents }: { maxHistoryEvents: number }): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength >= maxHistoryEvents;
}
