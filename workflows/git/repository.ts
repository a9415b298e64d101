import {
  ActivityCancellationType,
  ActivityFailure,
  type ActivityOptions,
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
import type { Activities, GitQueueActivities } from '../../activities/main.ts';
import type { OrderStep, RepositoryStep } from '../../models/git/steps.ts';
import { failureCode } from '../failureCode.ts';
import { isHistoryFull } from '../historyLimit.ts';

/** Ids and limits only: what is to be done is in rows. */
export interface RepositoryInput {
  itemId: string;
  /** The queue of the work that waits for a git server. */
  gitQueue: string;
  heartbeatTimeoutMs: number;
  maxHistoryEvents: number;
}

/** Something is to be done in the repository; its orders say what. */
export const repositoryChangedSignal = defineSignal('changed');
/** What is being done may have been called off. */
export const repositoryCalledOffSignal = defineSignal('calledOff');

/** What it is doing, for an operator in the Temporal UI. */
export const repositoryStepQuery = defineQuery<RepositoryStep['do']>('step');

// Only rows are touched: safe to repeat for as long as the database is down. Local, since somebody waits.
const { nextRepositoryStep, endRepositoryStep, isOrderCalledOff } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1 minute',
  localRetryThreshold: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
});

type OrderWork = Extract<RepositoryStep, { do: OrderStep }>;

/**
 * One repository, for as long as something is to be done in it: orders are worked through one after the other, so that
 * no two of them are ever at the same files.
 */
export async function repository(input: RepositoryInput): Promise<void> {
  const { itemId } = input;
  let told = 0;
  let calls = 0;
  let doing: RepositoryStep['do'] = 'rest';
  setHandler(repositoryStepQuery, () => doing);
  setHandler(repositoryChangedSignal, () => void told++);
  setHandler(repositoryCalledOffSignal, () => {
    told++;
    calls++;
  });
  for (;;) {
    const [seen, seenCalls] = [told, calls];
    const step = await nextRepositoryStep({ itemId });
    doing = step.do;
    if (step.do === 'rest') {
      if (told === seen) return;
    } else if (step.do === 'remove') await removeAll(input);
    else await takeStep(input, step, { before: seenCalls, now: () => calls });
    if (isHistoryFull(input)) {
      await condition(allHandlersFinished);
      await continueAsNew<typeof repository>(input);
    }
  }
}

/** Nobody waits for this, and it must not be left: attempts are unlimited. */
async function removeAll({ itemId, heartbeatTimeoutMs }: RepositoryInput): Promise<void> {
  const { removeRepository } = proxyActivities<Activities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: { initialInterval: '1 second', maximumInterval: '5 minutes' },
  });
  await removeRepository({ itemId });
}

async function takeStep(
  input: RepositoryInput,
  step: OrderWork,
  calls: { before: number; now: () => number },
): Promise<void> {
  const { itemId } = input;
  const { orderId } = step;
  const scope = new CancellationScope();
  let isOver = false;
  const work = scope.run(() => workOf(input, step));
  const watch = async () => {
    for (let seen = calls.before; ; ) {
      await condition(() => isOver || calls.now() > seen);
      if (isOver) return;
      seen = calls.now();
      // An order may be meant that waits behind this one.
      if (await isOrderCalledOff({ orderId })) return scope.cancel();
    }
  };
  const watched = watch();
  let code: string | undefined;
  try {
    await work;
  } catch (error) {
    if (isCancellation(error)) code = 'CALLED_OFF';
    else if (error instanceof ActivityFailure) code = failureCode(error);
    else throw error; // our bug: the task is retried until it is fixed
  } finally {
    isOver = true;
  }
  await watched;
  await endRepositoryStep({ itemId, orderId, step: step.do, ...(code !== undefined && { code }) });
}

function workOf(input: RepositoryInput, { do: step, orderId, deadlineMs }: OrderWork): Promise<void> {
  const { itemId, gitQueue, heartbeatTimeoutMs } = input;
  // What arrived stays with the worker, so another attempt goes on from there. What the other side refuses fails at
  // once; the deadline is that of the whole order, in which it may wait for a slot.
  const options: ActivityOptions = {
    scheduleToCloseTimeout: deadlineMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    // The next order must not meet what is left of this one.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
  };
  const activities = proxyActivities<Activities>(options);
  const remote = proxyActivities<GitQueueActivities>({
    ...options,
    taskQueue: gitQueue,
  });
  const works: Record<OrderStep, (what: { itemId: string; orderId: string }) => Promise<void>> = {
    clone: remote.cloneMirror,
    restore: remote.restoreFiles,
    fill: activities.fillTree,
    files: remote.bringFiles,
    change: activities.changeTree,
    save: activities.saveTree,
    fetch: remote.fetchMirror,
    update: activities.updateTree,
    push: remote.pushMirror,
    openDraft: activities.openDraft,
    restoreDraft: remote.restoreDraft,
    fillDraft: activities.fillDraft,
    saveDraft: activities.saveDraft,
    updateDraft: activities.updateDraft,
    join: activities.joinDraft,
    dropDraft: activities.dropDraft,
  };
  return works[step]({ itemId, orderId });
}
