import { transaction } from '../../models/database.ts';
import { idempotencyModels } from '../../models/idempotency.ts';
import { operationModels } from '../../models/operation.ts';
import type { CommonDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { type SweepReport, sweepEach } from '../sweepEach.ts';

const maxOperationsPerSweep = 500;

/** What the sweeper does for operations, as for turns (chat/sweeps.ts). */
export function createOperationSweeps(deps: CommonDeps) {
  const before = () => new Date(Date.now() - deps.config.sweeper.graceSeconds * 1_000);
  const { Operation } = operationModels(deps.database);
  return {
    /** Unended operations whose workflow is not running: one that never was is started, one that is gone is ended. */
    async sweepOperations(): Promise<SweepReport> {
      using _heartbeat = keepAlive();
      const operations = await Operation.unendedBefore(before(), maxOperationsPerSweep);
      return sweepEach(operations, async (operation) => {
        const { id, kind, cancelRequestedAt } = operation;
        const state = await deps.workflows.describeOperation(kind, id);
        if (state === 'running') return 'left';
        if (state === 'absent') {
          await deps.workflows.startOperation(operation);
          return 'started';
        }
        const end = cancelRequestedAt === null ? lostOperation : ({ status: 'cancelled' } as const);
        await transaction(deps.database, (tx) => Operation.end(id, end, tx));
        return 'ended';
      });
    },

    /** Idempotency keys older than their 30 days. */
    async purgeIdempotencyKeys(): Promise<number> {
      using _heartbeat = keepAlive();
      return idempotencyModels(deps.database).Idempotency.purge();
    },
  };
}

const lostOperation = {
  status: 'failed',
  code: 'WORKFLOW_LOST',
  detail: 'The operation was ended by an operator or lost by the workflow server.',
} as const;

export const operationSweeps = [
  'sweepOperations',
  'purgeIdempotencyKeys',
] as const satisfies readonly (keyof ReturnType<typeof createOperationSweeps>)[];
