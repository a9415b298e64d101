import { DomainError } from '../../base/errors.ts';
import { chatModels } from '../../models/chat/models.ts';
import { takeToolResults } from '../chat/toolResults.ts';
import type { Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import type { Conversation } from './conversation.ts';
import type { Telling } from './followTurn.ts';
import { callFromElsewhere, refused, resultUnknown } from './refusals.ts';

/**
 * Passes tool results to the turn that waits for them; undefined if there are none. As in OpenAI's API, all calls of
 * the turn must have a result (400 `TOOL_RESULT_MISSING`). Other results are part of the history if their calls are
 * among the messages and a user has said something since; otherwise 400 `TOOL_RESULT_UNKNOWN`.
 */
export async function continueTurn(
  deps: RouteDeps,
  caller: Caller,
  { results, news }: Conversation,
  threadId: string | undefined,
): Promise<Telling | undefined> {
  if (results.length === 0) return undefined;
  await requireAllResults(deps, caller, results);
  const toolResults = results.map(({ toolCallId, content }) => ({ toolUseId: toolCallId, content }));
  try {
    return await takeToolResults(deps, caller, { toolResults }, threadId);
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'TOOL_RESULT_UNKNOWN') throw error;
    const lost = results.find(({ hasCall }) => !hasCall);
    if (lost !== undefined) throw resultUnknown(lost.index);
    if (news.length > 0) return undefined;
    throw callFromElsewhere(results[0]?.index ?? 0);
  }
}

async function requireAllResults(
  { database }: RouteDeps,
  caller: Caller,
  results: Conversation['results'],
): Promise<void> {
  const { ToolCall, Turn } = chatModels(database);
  const call = await ToolCall.findByPk(results[0]?.toolCallId ?? '');
  const turn = call && (await Turn.findByPk(call.turnId));
  if (turn?.userId !== caller.userId) return;
  const given = new Set(results.map(({ toolCallId }) => toolCallId));
  const open = await ToolCall.openOf([turn.id]);
  const missing = open.filter(({ id, waitsFor }) => waitsFor === 'client' && !given.has(id));
  if (missing.length === 0) return;
  const detail = `Each tool call needs a result. Add results for ${missing.map(({ id }) => id).join(', ')}.`;
  throw refused('TOOL_RESULT_MISSING', '/messages', detail);
}
