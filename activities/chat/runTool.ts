import { ToolCall } from '../../models/chat/toolCall.ts';
import { Turn } from '../../models/chat/turn.ts';
import { transaction } from '../../models/database.ts';
import { DomainError } from '../../models/errors.ts';
import { resolveSecretReferences } from '../../models/secrets/references.ts';
import type { UiChunk } from '../../models/turnLog/chunks.ts';
import { WriterFencedError } from '../../models/turnLog/entry.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';

export interface RunToolInput {
  turnId: string;
  step: number;
  toolCallId: string;
}

/**
 * Runs one tool call and puts its result into the turn's log. The row's change and the chunk are one commit, so the result is there
 * once, however often the activity runs. Secrets go into the tool by reference, and do not come out of it.
 */
export function createRunTool(deps: ActivityDeps) {
  return async function runTool({ toolCallId }: RunToolInput): Promise<void> {
    const call = await ToolCall.findByPk(toolCallId);
    if (call === null || call.status !== 'pending') return;
    const turn = await Turn.findByPk(call.turnId);
    if (turn === null || turn.isTerminal) return;
    const chunk = await run(deps, call, turn);
    await settle(deps, call, chunk.type === 'tool-output-available' ? 'succeeded' : 'failed', chunk);
  };
}

type ResultChunk = Extract<UiChunk, { type: 'tool-output-available' | 'tool-output-error' }>;

async function run(deps: ActivityDeps, call: ToolCall, turn: Turn): Promise<ResultChunk> {
  const { id: toolCallId, toolName } = call;
  const tool = deps.tools.get(toolName);
  if (tool === undefined) return failure(toolCallId, `There is no tool named ${toolName}.`);
  using heartbeat = keepAlive();
  const { dynamic, redactors } = deps.secrets;
  try {
    const input = await resolveSecretReferences(call.input, (ids) => dynamic.use(turn.spaceId, turn.userId, ids));
    const output = await tool.run(input, { turn, toolCallId, signal: heartbeat.cancelled });
    // Asked for now, since the tool itself may have set a secret.
    const redactor = await redactors.forSpace(turn.spaceId);
    return { type: 'tool-output-available', toolCallId, output: redactor.json(output), dynamic: true };
  } catch (error) {
    heartbeat.cancelled.throwIfAborted();
    const redactor = await redactors.forSpace(turn.spaceId);
    if (error instanceof DomainError) return failure(toolCallId, redactor.text(error.message));
    deps.logger.error({ err: error, turnId: turn.id, toolCallId, toolName }, 'A tool has failed.');
    return failure(toolCallId, 'The tool has failed.');
  }
}

function failure(toolCallId: string, errorText: string): ResultChunk {
  return { type: 'tool-output-error', toolCallId, errorText, dynamic: true };
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
