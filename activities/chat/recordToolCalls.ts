import type { Transaction } from 'sequelize';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall, WaitsFor } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import { needsApproval, scopesOf, secretRefusal, type Tool } from '../tools/tool.ts';
import type { ChunkMapper, MadeToolCall } from './chunkMapper.ts';

interface Offer {
  /** The tools that the model was offered, by name. */
  tools: ReadonlyMap<string, Tool>;
  registry: Pick<ToolRegistry, 'faultsOf'>;
  /** The longest time that a client or a person may take. */
  maxWaitMs: number;
}

/** Records a step's calls in the order in which the model made them, and what each of them waits for. */
export async function recordToolCalls(
  tx: Transaction,
  turn: Turn,
  step: number,
  made: Pick<ChunkMapper, 'toolCalls'> | undefined,
  { tools, registry, maxWaitMs }: Offer,
): Promise<ToolCall[]> {
  const now = new Date();
  const rows = (made?.toolCalls ?? []).map((call) => {
    const tool = tools.get(call.toolName);
    const wait = waitOf(call, tool, registry, turn);
    const deadline = wait.for === 'nothing' ? null : new Date(now.getTime() + Math.min(wait.forMs, maxWaitMs));
    return {
      id: call.id,
      turnId: turn.id,
      step,
      toolName: call.toolName,
      input: call.input ?? {},
      scopes: tool && scopesOf(tool, call.input),
      // The stream says that its input is not valid JSON; there is nothing to run.
      status: call.inputError === undefined ? 'pending' : 'failed',
      waitsFor: wait.for,
      deadlineAt: deadline,
      createdAt: now,
      endedAt: call.inputError === undefined ? null : now,
    };
  });
  return rows.length === 0 ? [] : chatModels(tx).ToolCall.bulkCreate(rows, { transaction: tx });
}

/** An invalid call is not shown for approval: it fails when it is run. */
function waitOf(
  { input, inputError }: MadeToolCall,
  tool: Tool | undefined,
  registry: Pick<ToolRegistry, 'faultsOf'>,
  turn: Turn,
): { for: WaitsFor; forMs: number } {
  const nothing = { for: 'nothing', forMs: 0 } as const;
  if (inputError !== undefined || tool === undefined) return nothing;
  if (tool.runs === 'client') {
    const isRight = registry.faultsOf(tool, structuredClone(input)) === undefined;
    return isRight ? { for: 'client', forMs: tool.deadlineMs } : nothing;
  }
  if (secretRefusal(tool, input, turn) !== undefined) return nothing;
  return needsApproval(tool, input) ? { for: 'approval', forMs: Number.POSITIVE_INFINITY } : nothing;
}
