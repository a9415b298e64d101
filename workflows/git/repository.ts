import { ActivityCancellationType, type ActivityOptions, proxyActivities } from '@temporalio/workflow';
import type { Activities, GitQueueActivities } from '../../activities/main.ts';
import type { OrderStep, RepositoryStep } from '../../models/git/steps.ts';
import { type ActorInput, live } from '../actor.ts';
import { patiently, proxyRows, rarely } from '../retries.ts';

export interface RepositoryInput extends ActorInput {
  itemId: string;
  /** The task queue for work that waits for git servers. */
  gitQueue: string;
}

type OrderWork = Extract<RepositoryStep, { do: OrderStep }>;

/**
 * The workflow of one repository. It runs while the repository has orders, and does them one after the other, so that
 * no two orders use the same files at once.
 */
export async function repository(input: RepositoryInput): Promise<void> {
  const { itemId, gitQueue, heartbeatTimeoutMs } = input;
  const { lookAtRepository, endRepositoryStep, isOrderCalledOff } = proxyRows<Activities>();
  // Objects that arrived stay on the worker, so a retry continues from them. A refusal fails at once. The timeout is
  // the deadline of the whole order, which includes the wait for a slot.
  const optionsOf = ({ deadlineMs }: OrderWork): ActivityOptions => ({
    scheduleToCloseTimeout: deadlineMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    // The next order must not meet leftovers of this one.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: patiently,
  });
  const here = (step: OrderWork) => proxyActivities<Activities>(optionsOf(step));
  const remote = (step: OrderWork) => proxyActivities<GitQueueActivities>({ ...optionsOf(step), taskQueue: gitQueue });
  // Unlimited retries: no caller waits for the removal, and nothing may be left.
  const { removeRepository } = proxyActivities<Activities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: heartbeatTimeoutMs,
    retry: rarely,
  });
  const which = ({ orderId, at }: OrderWork) => ({ itemId, orderId, at });
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
