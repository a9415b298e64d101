import { requestStop } from '../../models/chat/endTurn.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { PurgeScope } from '../../models/chat/purge.ts';
import type { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import { transaction } from '../../models/database/database.ts';
import { type OperationEnd, operationModels } from '../../models/operations/operation.ts';
import { purgeRows } from '../../models/purge.ts';
import type { CommonDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { requireOrder, requireOwnWorkflow } from '../order.ts';

const maxStopsAtOnce = 200;

export interface OperationDeps extends CommonDeps {
  turnLog: TurnLog;
}

/** Activities that remove the rows of a deleted thread or space. */
export function createPurges(deps: OperationDeps) {
  const { database } = deps;
  return {
    /** Asks the scope's unended turns to stop, and returns their number. 0 means that no turn writes there any more. */
    async stopTurns(scope: PurgeScope): Promise<number> {
      await requireOrder(database, scope);
      const turns = await chatModels(database).Turn.unendedOf(scope, maxStopsAtOnce);
      for (const { id } of turns) {
        if ((await requestStop(deps, id)) === 'stopping') await deps.workflows.stopTurn(id);
      }
      return turns.length;
    },

    /** Removes the scope's rows, in batches that lock little. */
    async purgeRows(scope: PurgeScope): Promise<void> {
      using heartbeat = keepAlive();
      await requireOrder(database, scope);
      await purgeRows(database, scope, () => heartbeat.cancelled.throwIfAborted());
    },

    async endOperation({ operationId, end }: { operationId: string; end: OperationEnd }): Promise<void> {
      requireOwnWorkflow(operationId);
      await transaction(database, (tx) => operationModels(tx).Operation.end(operationId, end, tx));
    },
  };
}
