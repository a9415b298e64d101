import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { CommonDeps } from '../deps.ts';

/** So many steps with just the same calls, one after the other, are a loop. */
const repeatsOfLoop = 12;

/** The code of the limit that a turn has reached with the calls of this step, for the turn to end with. */
export async function limitReached(
  deps: Pick<CommonDeps, 'config' | 'database'>,
  turnId: string,
  step: number,
): Promise<'TOOL_CALL_LIMIT' | 'TOOL_LOOP' | undefined> {
  const { ToolCall } = chatModels(deps.database);
  if ((await ToolCall.countOf(turnId)) > deps.config.chat.maxToolCallsPerTurn) return 'TOOL_CALL_LIMIT';
  if (step + 1 < repeatsOfLoop) return undefined;
  const steps = await ToolCall.since(turnId, step + 1 - repeatsOfLoop);
  if (steps.size < repeatsOfLoop) return undefined;
  const signatures = new Set([...steps.values()].map(signatureOf));
  return signatures.size === 1 ? 'TOOL_LOOP' : undefined;
}

function signatureOf(calls: readonly ToolCall[]): string {
  return JSON.stringify(calls.map(({ toolName, input }) => [toolName, input]));
}
