import {
  ActivityCancellationType,
  type ActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { Activities, GitQueueActivities } from '../../activities/main.ts';
import type { OrderStep, RepositoryStep } from '../../models/git/steps.ts';
import { type ActorInput, live } from '../actor.ts';
import { patiently, rarely, rowsLocally } from '../retries.ts';

export interface RepositoryInput extends ActorInput {
  itemId: string;
  /** The queue of the work that waits for a git server. */
  gitQueue: string;
}

type OrderWork = Extract<RepositoryStep, { do: OrderStep }>;

const { lookAtRepository, endRepositoryStep, isOrderCalledOff } = proxyLocalActivities<Activities>(rowsLocally);

/**
 * One repository, for as long as something is to be done in it: orders are worked through one after the other, so that
 * no two of them are ever at the same files.
 */
export async function repository(input: RepositoryInput): Promise<void> {
  const { itemId, gitQueue, heartbeatTimeoutMs } = input;
  // What arrived stays with the worker, so another attempt goes on from there. What the other side refuses fails at
  // once; the deadline is that of the whole order, in which it may wait for a slot.
  const optionsOf = ({ deadlineMs }: OrderWork): ActivityOptions => ({
    scheduleToCloseTimeout: deadlineMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    // The next order must not meet what is left of this one.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: patiently,
  });
  const here = (step: OrderWork) => proxyActivities<Activities>(optionsOf(step));
  const remote = (step: OrderWork) => proxyActivities<GitQueueActivities>({ ...optionsOf(step), taskQueue: gitQueue });
  // Nobody waits for it, and nothing may be left: attempts are unlimited.
  const { removeRepository } = proxyActivities<Activities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: rarely,
  });
  const which = ({ orderId }: OrderWork) => ({ itemId, orderId });
  await live<RepositoryStep>(input, {
    look: () => lookAtRepository({ itemId }),
    steps: {
      remove: () => removeRepository({ itemId }),
      clone: (step) => remote(step).cloneMirror(which(step)),
      restore: (step) => remote(step).restoreFiles(which(step)),
      fill: (step) => here(step).fillTree(which(step)),
      files: (step) => remote(step).bringFiles(which(step)),
      change: (step) => here(step).changeTree(which(step)),
      save: (step) => here(step).saveTree(which(step)),
      fetch: (step) => remote(step).fetchMirror(which(step)),
      update: (step) => here(step).updateTree(which(step)),
      push: (step) => remote(step).pushMirror(which(step)),
      openDraft: (step) => here(step).openDraft(which(step)),
      restoreDraft: (step) => remote(step).restoreDraft(which(step)),
      fillDraft: (step) => here(step).fillDraft(which(step)),
      saveDraft: (step) => here(step).saveDraft(which(step)),
      updateDraft: (step) => here(step).updateDraft(which(step)),
      join: (step) => here(step).joinDraft(which(step)),
      dropDraft: (step) => here(step).dropDraft(which(step)),
    },
    async ended(step, code) {
      if (step.do === 'remove') return;
      await endRepositoryStep({ ...which(step), step: step.do, ...(code !== undefined && { code }) });
    },
    interruption: {
      code: 'CALLED_OFF',
      // The interruption may be for an order that waits behind this one.
      isFor: async (step) => step.do !== 'remove' && (await isOrderCalledOff({ orderId: step.orderId })),
    },
  });
}
