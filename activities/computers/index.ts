import { endStep, type StepEnd } from '../../models/computers/ends.ts';
import { deleteComputersOf } from '../../models/computers/purge.ts';
import { failSnapshot, nextOfSnapshot, type SnapshotStep } from '../../models/computers/snapshotting.ts';
import { type ComputerStep, nextStep } from '../../models/computers/steps.ts';
import { requireOrder } from '../order.ts';
import type { ComputerDeps } from './deps.ts';
import { computerSweeps, createComputerSweeps } from './sweeps.ts';

/** Activities for computers on the main queue. Their hosts have queues of their own. */
function createComputerActivities(deps: ComputerDeps) {
  const { database, workflows } = deps;
  return {
    ...createComputerSweeps(deps),
    lookAtComputer: ({ computerId }: { computerId: string }): Promise<ComputerStep> => nextStep(deps, computerId),
    endComputerStep: (end: StepEnd): Promise<void> => endStep(deps, end),

    lookAtSnapshot: ({ snapshotId }: { snapshotId: string }): Promise<SnapshotStep> => nextOfSnapshot(deps, snapshotId),
    failComputerSnapshot: ({ snapshotId, code }: { snapshotId: string; code: string }): Promise<void> =>
      failSnapshot(database, snapshotId, code),

    /** Orders the removal of a deleted space's computers. Returns how many still exist. */
    async purgeComputersOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await deleteComputersOf(database, scope.spaceId);
      for (const computer of left) await workflows.interruptComputer(computer);
      return left.length;
    },
  };
}

export const computers = { create: createComputerActivities, sweeps: computerSweeps };
