import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { HostActivities } from '../../activities/computers/hostActivities.ts';
import type { Activities } from '../../activities/main.ts';
import type { ComputerStep, HostStep } from '../../models/computers/steps.ts';
import { failureCode } from '../failureCode.ts';
import { isHistoryFull } from '../historyLimit.ts';

/** Ids and limits only: what is wanted of the computer is in its row. */
export interface ComputerInput {
  computerId: string;
  /** What a host's queue is called, before the host's id. */
  queuePrefix: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** Something is wanted of the computer, or has become of it; its row says what. */
export const computerChangedSignal = defineSignal('changed');
/** The same, and it does not wait for what is under way: somebody wants it stopped, started anew, or deleted. */
export const computerInterruptedSignal = defineSignal('interrupted');

/** What it is doing, for an operator in the Temporal UI. */
export const computerStepQuery = defineQuery<ComputerStep['do']>('step');

// Only rows are touched: safe to repeat for as long as the database is down, and a computer must not be stuck because
// of that. Local, since somebody waits for a start.
const { nextComputerStep, endComputerStep } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

/** How long a host may take to clear up after a step that has failed. Its next beat does it where this is not enough. */
const clearUpTimeout = '20 seconds';

type HostWork = Extract<ComputerStep, { do: HostStep }>;

/**
 * One computer, from the moment somebody wants it until it rests: it does one step after the other on the computer's
 * host, and in between watches that it is used and paid for.
 */
export async function computer(input: ComputerInput): Promise<void> {
  const { computerId } = input;
  let told = 0;
  let current: CancellationScope | undefined;
  let doing: ComputerStep['do'] = 'rest';
  setHandler(computerStepQuery, () => doing);
  setHandler(computerChangedSignal, () => void told++);
  setHandler(computerInterruptedSignal, () => {
    told++;
    current?.cancel();
  });
  for (;;) {
    const seen = told;
    const step = await nextComputerStep({ computerId });
    doing = step.do;
    if (step.do === 'rest') {
      if (told === seen) return;
    } else if (step.do === 'watch') {
      await condition(() => told > seen, step.waitMs);
    } else {
      current = isInterruptible(step.do) ? new CancellationScope() : undefined;
      if (current !== undefined && told > seen) current = undefined;
      await takeStep(input, step, current);
      current = undefined;
    }
    if (isHistoryFull(input)) {
      await condition(allHandlersFinished);
      await continueAsNew<typeof computer>(input);
    }
  }
}

/** What may be given up half done: a stop and a removal are what one gives something else up for. */
function isInterruptible(step: HostStep): boolean {
  return step !== 'stop' && step !== 'destroy';
}

async function takeStep(input: ComputerInput, step: HostWork, scope = new CancellationScope()): Promise<void> {
  const { computerId } = input;
  const { generation } = step;
  let code: string | undefined;
  try {
    await scope.run(() => onHost(input, step)[step.do]({ computerId, generation }));
  } catch (error) {
    if (isCancellation(error)) code = 'COMPUTER_STOPPED';
    else if (error instanceof ActivityFailure) code = failureCode(error);
    else throw error; // our bug: the task is retried until it is fixed
  }
  await endComputerStep({ computerId, generation, step: step.do, ...(code !== undefined && { code }) });
  if (code !== undefined && step.do === 'start') await clearUp(input, step);
}

/** What has failed half-way must not go on running, and nobody waits for that. */
async function clearUp(input: ComputerInput, step: HostWork): Promise<void> {
  const { computerId } = input;
  const { stopComputer } = proxyActivities<HostActivities>({
    taskQueue: `${input.queuePrefix}${step.hostId}`,
    scheduleToCloseTimeout: clearUpTimeout,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: '500 milliseconds', maximumAttempts: 3 },
  });
  try {
    await stopComputer.executeWithOptions({ summary: 'clear up' }, [{ computerId, generation: step.generation }]);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
  }
}

type Work = (what: { computerId: string; generation: number }) => Promise<void>;

function onHost(input: ComputerInput, { hostId, deadlineMs, generation }: HostWork): Record<HostStep, Work> {
  // The host does what it is asked again only once, so a worker that dies costs nothing but time. What it refuses
  // fails at once; the deadline is that of the whole step.
  const host = proxyActivities<HostActivities>({
    taskQueue: `${input.queuePrefix}${hostId}`,
    scheduleToCloseTimeout: deadlineMs,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    retry: { initialInterval: '200 milliseconds', maximumInterval: '5 seconds' },
  });
  const summary = `generation ${generation}, ${hostId}`;
  return {
    start: (what) => host.startComputer.executeWithOptions({ summary }, [what]),
    stop: (what) => host.stopComputer.executeWithOptions({ summary }, [what]),
    pause: (what) => host.pauseComputer.executeWithOptions({ summary }, [what]),
    fork: (what) => host.forkComputer.executeWithOptions({ summary }, [what]),
    destroy: (what) => host.destroyComputer.executeWithOptions({ summary }, [what]),
  };
}
