import type { Transaction } from 'sequelize';
import { ToolCall, type WaitsFor } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import type { Tool } from '../tools/tool.ts';
import type { ChunkMapper, MadeToolCall } from './chunkMapper.ts';

/** How long a person may take to approve; a turn waits for no longer. */
export const longestWaitMs = 7 * 86_400_000;

/** Writes down the calls that a step has made, in the order in which the model made them, and what each of them waits for. */
export async function recordToolCalls(
  tx: Transaction,
  turn: Turn,
  step: number,
  made: Pick<ChunkMapper, 'toolCalls'> | undefined,
  { tools, registry }: { tools: ReadonlyMap<string, Tool>; registry: Pick<ToolRegistry, 'faultsOf'> },
): Promise<ToolCall[]> {
  const now = new Date();
  const rows = (made?.toolCalls ?? []).map((call) => {
    const wait = waitOf(call, tools.get(call.toolName), registry);
    return {
      id: call.id,
      turnId: turn.id,
      step,
      toolName: call.toolName,
      input: call.input ?? {},
      // The stream says that its input is no JSON; there is nothing to run.
      status: call.inputError === undefined ? 'pending' : 'failed',
      waitsFor: wait.for,
      deadlineAt: wait.forMs === undefined ? null : new Date(now.getTime() + wait.forMs),
      createdAt: now,
      endedAt: call.inputError === undefined ? null : now,
    };
  });
  return rows.length === 0 ? [] : ToolCall.bulkCreate(rows, { transaction: tx });
}

/** What cannot be right is not put before the client: it fails when it is run. */
function waitOf(
  { input, inputError }: MadeToolCall,
  tool: Tool | undefined,
  registry: Pick<ToolRegistry, 'faultsOf'>,
): { for: WaitsFor; forMs?: number } {
  if (inputError !== undefined || tool === undefined) return { for: 'nothing' };
  if (tool.runs === 'client') {
    const isRight = registry.faultsOf(tool, structuredClone(input)) === undefined;
    return isRight ? { for: 'client', forMs: tool.deadlineMs } : { for: 'nothing' };
  }
  return tool.isDangerous ? { for: 'approval', forMs: longestWaitMs } : { for: 'nothing' };
}
