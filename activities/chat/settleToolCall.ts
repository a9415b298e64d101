import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { type ResultChunk, statusOf, succeededResult } from '../../models/chat/toolResult.ts';
import { WriterFencedError } from '../../models/chat/turnLog/entry.ts';
import { transaction } from '../../models/database/database.ts';
import type { ChatDeps } from './deps.ts';

/** Puts a call's result into its turn's log, once: the row's change and the chunk are one commit. */
export async function settleToolCall(
  deps: Pick<ChatDeps, 'database' | 'turnLog'>,
  { id, turnId }: Pick<ToolCall, 'id' | 'turnId'>,
  result: ResultChunk,
): Promise<void> {
  const { database, turnLog } = deps;
  const { ToolCall, Turn } = chatModels(database);
  try {
    const segment = await transaction(database, async (tx) => {
      // Locks the turn's row first, like everything else.
      await Turn.lock(turnId, tx);
      const call = await ToolCall.findByPk(id, { transaction: tx, lock: tx.LOCK.UPDATE });
      // A run that was given up, for its timeout or its worker, may have had its effect after all.
      const said = call?.effect ? succeededResult(id, call.effect.result) : result;
      if (!(await ToolCall.settle(id, statusOf(said), tx))) throw new AlreadySettled();
      return turnLog.appendIn(tx, turnId, [said]);
    });
    turnLog.announce(segment);
  } catch (error) {
    // Another run of the same call was faster, or the turn has ended: both are fine.
    if (!(error instanceof AlreadySettled) && !(error instanceof WriterFencedError)) throw error;
  }
}

class AlreadySettled extends Error {}
