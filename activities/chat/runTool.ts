import { ToolCall } from '../../models/chat/toolCall.ts';
import { transaction } from '../../models/database.ts';
import type { UiChunk } from '../../models/turnLog/chunks.ts';
import { WriterFencedError } from '../../models/turnLog/entry.ts';
import type { ActivityDeps } from '../deps.ts';

export interface RunToolInput {
  turnId: string;
  step: number;
  toolCallId: string;
}

/**
 * Runs one tool call and puts its result into the turn's log. The row's change and the chunk are one commit, so the result is there
 * once, however often the activity runs. No tools are registered yet: the model hears that the one it wanted does not exist.
 */
export function createRunTool(deps: ActivityDeps) {
  return async function runTool({ toolCallId }: RunToolInput): Promise<void> {
    const call = await ToolCall.findByPk(toolCallId);
    if (call === null || call.status !== 'pending') return;
    const result: UiChunk = {
      type: 'tool-output-error',
      toolCallId,
      errorText: `There is no tool named ${call.toolName}.`,
      dynamic: true,
    };
    await settle(deps, call, 'failed', result);
  };
}

async function settle(
  deps: ActivityDeps,
  call: ToolCall,
  status: 'succeeded' | 'failed',
  result: UiChunk,
): Promise<void> {
  const { database, turnLog } = deps;
  try {
    const segment = await transaction(database, async (tx) => {
      // The turn's row is locked first, by the append, as everywhere.
      const appended = await turnLog.appendIn(tx, call.turnId, [result]);
      const settled = await ToolCall.settle(call.id, status, tx);
      if (!settled) throw new AlreadySettled();
      return appended;
    });
    turnLog.announce(segment);
  } catch (error) {
    // Another run of the same call was first, or the turn has ended: both are fine.
    if (!(error instanceof AlreadySettled) && !(error instanceof WriterFencedError)) throw error;
  }
}

class AlreadySettled extends Error {}
