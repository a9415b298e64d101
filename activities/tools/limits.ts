import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { CommonDeps } from '../deps.ts';

/** This many consecutive steps with identical calls are a loop. */
const repeatsOfLoop = 12;

/** The error code of the limit that a turn has reached with this step's calls. */
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
