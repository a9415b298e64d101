import { requestStop } from '../../models/chat/endTurn.ts';
import { chatModels } from '../../models/chat/models.ts';
import { type PurgeScope, purgeBatch } from '../../models/chat/purge.ts';
import { purgeChatSettings } from '../../models/chat/settings.ts';
import { transaction } from '../../models/database.ts';
import { type OperationEnd, operationModels } from '../../models/operation.ts';
import { purgeSpaceSecrets } from '../../models/secrets/purge.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';

const maxStopsAtOnce = 200;

/** What removes the rows of a thread or a space that somebody has deleted. */
export function createPurges(deps: ActivityDeps) {
  return {
    /** Asks the scope's unended turns to stop, and says how many there were: 0 means that nothing writes there any more. */
    async stopTurns(scope: PurgeScope): Promise<number> {
      const turns = await chatModels(deps.database).Turn.unendedOf(scope, maxStopsAtOnce);
      for (const { id } of turns) {
        if ((await requestStop(deps, id)) === 'stopping') await deps.workflows.stopTurn(id);
      }
      return turns.length;
    },

    /** Removes the scope's rows, in batches that lock little. */
    async purgeRows(scope: PurgeScope): Promise<void> {
      using heartbeat = keepAlive();
      while (await purgeBatch(deps.database, scope)) heartbeat.cancelled.throwIfAborted();
      if ('spaceId' in scope) await purgeSpaceSecrets(deps.database, scope.spaceId);
      if ('spaceId' in scope) await purgeChatSettings(deps.database, scope.spaceId);
    },

    async endOperation({ operationId, end }: { operationId: string; end: OperationEnd }): Promise<void> {
      await transaction(deps.database, (tx) => operationModels(deps.database).Operation.end(operationId, end, tx));
    },
  };
}
