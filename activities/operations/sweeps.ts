import { transaction } from '../../models/database/database.ts';
import { purgeIdempotencyKeys } from '../../models/operations/idempotency.ts';
import {
  operationModels,
  purgeOldOperations,
  type UnendedOperation,
  unendedOperations,
} from '../../models/operations/operation.ts';
import type { CommonDeps } from '../deps.ts';
import {
  asSwept,
  graceBefore,
  purgeOlder,
  type SweepReport,
  type Sweeps,
  type Swept,
  sweepEach,
} from '../sweepEach.ts';

/** The sweep of unended operations, like that of turns (chat/sweeps.ts), and two purges. */
export function createOperationSweeps({ config, database, logger, workflows }: CommonDeps) {
  const { Operation } = operationModels(database);

  async function lookAfter(operation: UnendedOperation, isWell: boolean): Promise<Swept> {
    const { id, kind, cancelRequestedAt } = operation;
    if (workflows.isOfObject(kind)) {
      const tell = cancelRequestedAt === null ? workflows.remindOperation : workflows.cancelOperation;
      return asSwept(await tell(operation), 'reminded');
    }
    const state = isWell ? 'running' : await workflows.describeOperation(kind, id);
    if (state === 'running') {
      return cancelRequestedAt === null ? 'left' : asSwept(await workflows.cancelOperation(operation), 'reminded');
    }
    if (state === 'absent') return asSwept(await workflows.startOperation(operation), 'started');
    const end = cancelRequestedAt === null ? lostOperation : ({ status: 'cancelled' } as const);
    await transaction(database, (tx) => Operation.end(id, end, tx));
    return 'ended';
  }

  return {
    /**
     * Handles unended operations: starts those without a workflow, ends those whose workflow is gone, and repeats the
     * cancel signal.
     */
    sweepOperations: (): Promise<SweepReport> =>
      sweepEach<UnendedOperation>({
        logger,
        before: graceBefore(config),
        page: (page) => unendedOperations(database, page),
        well: async (operations) => new Set([...(await workflows.runningOperations(operations))].map(({ id }) => id)),
        look: lookAfter,
      }),

    purgeOldOperations: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      purgeOldOperations(database, before, onBatch),
    ),

    /** The age is 0, since the model knows how long keys are kept. */
    purgeIdempotencyKeys: purgeOlder(0, (now, onBatch) => purgeIdempotencyKeys(database, now, onBatch)),
  };
}

const lostOperation = {
  status: 'failed',
  code: 'WORKFLOW_LOST',
  detail: 'The operation was ended by an operator or lost by the workflow server.',
} as const;

export const operationSweeps = {
  rescue: ['sweepOperations'],
  upkeep: ['purgeOldOperations', 'purgeIdempotencyKeys'],
} as const satisfies Sweeps<keyof ReturnType<typeof createOperationSweeps>>;
