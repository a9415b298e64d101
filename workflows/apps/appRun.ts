import {
  ActivityCancellationType,
  ActivityFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { Activities, RunQueueActivities } from '../../activities/main.ts';
import type { RunStep } from '../../models/apps/steps.ts';
import { failureCode } from '../failureCode.ts';
import { isHistoryFull } from '../historyLimit.ts';
import { tellBadEnd } from '../outcome.ts';

/** Ids and limits only: what is run is in the row. */
export interface AppRunInput {
  runId: string;
  /** The queue of the activity that runs its program. */
  runQueue: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** It may be the run's turn, or nobody may want it any more. */
export const appRunChangedSignal = defineSignal('changed');

/** For the wake before, the log after, and parts that are away. */
const marginMs = 30 * 60_000;

// Only rows are touched: safe to repeat for as long as the database is down. Local, since somebody waits.
const { nextAppRunStep, failAppRunAttempt } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

/** One run of an app's component: it waits for its turn, and is tried as often as its manifest says. */
export async function appRun(input: AppRunInput): Promise<void> {
  const { runId } = input;
  let told = 0;
  setHandler(appRunChangedSignal, () => void told++);
  for (;;) {
    const seen = told;
    const step = await nextAppRunStep({ runId });
    if (step.do === 'rest') {
      if (step.badEnd !== undefined) tellBadEnd(nameOf(step), step.badEnd);
      return;
    }
    if (step.do === 'wait') await condition(() => told > seen, step.forMs);
    else {
      setCurrentDetails(`${nameOf(step)}: attempt ${step.attempt}`);
      await makeAttempt(input, step);
    }
    if (isHistoryFull(input)) await continueAsNew<typeof appRun>(input);
  }
}

async function makeAttempt(
  { runId, runQueue, heartbeatTimeoutMs }: AppRunInput,
  { attempt, timeoutMs }: { attempt: number; timeoutMs: number },
): Promise<void> {
  // What it has started goes on when its worker dies, and the next one reads on. Its process has a timeout of its own.
  const { runAppAttempt } = proxyActivities<RunQueueActivities>({
    taskQueue: runQueue,
    scheduleToCloseTimeout: timeoutMs + marginMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
  });
  try {
    await runAppAttempt({ runId, attempt });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error; // our bug: the task is retried until it is fixed
    await failAppRunAttempt({ runId, attempt, code: failureCode(error) });
  }
}

function nameOf({ of }: Pick<Extract<RunStep, { do: 'rest' }>, 'of'>): string {
  return of === undefined ? 'Run' : `Component ${of.component} of app ${of.itemId}`;
}
