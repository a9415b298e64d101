import { chatModels } from '../../models/chat/models.ts';
import { type ParkedCalls, parkToolCalls } from '../../models/chat/parkToolCalls.ts';
import { failedResult } from '../../models/chat/toolResult.ts';
import type { ChatDeps } from './deps.ts';
import { type Audience, audienceOf } from './endTurn.ts';
import { settleToolCall } from './settleToolCall.ts';

/** The workflow's handling of calls that cannot run at once. */
export function createParking(deps: ChatDeps) {
  const { Turn } = chatModels(deps.database);
  return {
    /** With the devices to tell that the turn waits, when it begins to wait. */
    async parkToolCalls(input: { turnId: string; isIdle: boolean }): Promise<ParkedCalls & { audience?: Audience }> {
      const parked = await parkToolCalls(deps, input);
      const turn = parked.beganToWait ? await Turn.findByPk(input.turnId) : null;
      const audience = turn === null ? undefined : await audienceOf(deps, turn);
      return { ...parked, ...(audience && { audience }) };
    },

    /** Gives up a call that no worker could finish. */
    async abandonToolCall({ turnId, toolCallId }: { turnId: string; toolCallId: string }): Promise<void> {
      const result = failedResult(toolCallId, 'The tool could not be run. Whether it had an effect is not known.');
      await settleToolCall(deps, { id: toolCallId, turnId }, result);
    },
  };
}
