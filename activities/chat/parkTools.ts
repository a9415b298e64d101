import { chatModels } from '../../models/chat/models.ts';
import { type ParkedCalls, parkToolCalls } from '../../models/chat/parkToolCalls.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { failedResult } from '../../models/chat/toolResult.ts';
import type { ChatDeps } from './deps.ts';
import { type Audience, audienceOf } from './endTurn.ts';
import { settleToolCall } from './settleToolCall.ts';
import { interrupted, notRun } from './toolWords.ts';

/** The workflow's handling of calls that cannot run at once. */
export function createParking(deps: ChatDeps) {
  const { Turn } = chatModels(deps.database);
  /** Such a tool reads, or has its effect together with its record, which is refused from here on. */
  const runsAgain = async (call: ToolCall): Promise<boolean> => {
    const turn = await Turn.findByPk(call.turnId);
    const found = turn === null ? undefined : await deps.tools.find(turn, call.toolName);
    return found !== undefined && 'tool' in found && found.tool.runs === 'server' && found.tool.afterCrash === 'again';
  };
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
      const call = await chatModels(deps.database).ToolCall.findByPk(toolCallId);
      const isKnown = call === null || call.begunAt === null || (await runsAgain(call));
      const result = failedResult(toolCallId, isKnown ? notRun : interrupted);
      await settleToolCall(deps, { id: toolCallId, turnId }, result);
    },
  };
}
