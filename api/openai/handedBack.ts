import { DomainError } from '../../base/errors.ts';
import { conversationOf } from '../../models/chat/completions.ts';
import { endTurn } from '../../models/chat/endTurn.ts';
import type { HandedBack } from '../../models/chat/handOver.ts';
import type { ImportedMessage } from '../../models/chat/importHistory.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import type { Place } from './completionRequest.ts';
import type { Conversation } from './conversation.ts';
import { callFromElsewhere, resultMissing, resultUnknown } from './refusals.ts';
import { hashOfConversation, isSameReply, splitReply } from './sameConversation.ts';

/** The thread that a request's tool results continue. */
export interface Continued {
  turn: Turn;
  thread: Thread;
  /** As the client sent them: with the space's secrets. */
  handedBack: HandedBack;
}

/**
 * The thread whose last turn made the calls that the request answers, if the request's conversation is that thread's:
 * the new turn continues there, with what the model thought and did on the way. If the client has changed the
 * conversation, or the calls are from elsewhere, it is undefined: the request's messages then become a new thread. As in
 * OpenAI's API, all calls need a result: otherwise 400 `TOOL_RESULT_MISSING`. A result whose call is neither among the
 * messages nor known is 400 `TOOL_RESULT_UNKNOWN`.
 */
export async function findHandedBack(
  deps: RouteDeps,
  caller: Caller,
  conversation: Conversation,
  { place, named }: { place: Place; named: Thread | undefined },
): Promise<Continued | undefined> {
  const { results, history, news } = conversation;
  if (results.length === 0) return undefined;
  const asker = await findAsker(deps, caller, results);
  // A conversation from elsewhere may have been stopped by its user before all results came.
  if (asker !== undefined || news.length === 0) requireAllInRequest(history);
  const calls = asker?.calls ?? [];
  const known = new Set(calls.map(({ id }) => id));
  const lost = results.find(({ toolCallId, hasCall }) => !hasCall && !known.has(toolCallId));
  if (lost !== undefined) throw resultUnknown(lost.index);
  const isElsewhere = place.thread !== undefined && named?.id !== asker?.thread.id;
  if (asker === undefined || isElsewhere) {
    // The model sees the named thread, which has no such calls.
    if (named !== undefined && news.length === 0) throw callFromElsewhere(results[0]?.index ?? 0);
    return undefined;
  }
  const { turn, thread } = asker;
  await requireEnded(deps, turn);
  const isLast = thread.activeTurnId === null && thread.nextTurnOrdinal === turn.ordinal + 1;
  const isWhole = named === undefined && results.every(({ hasCall }) => hasCall);
  if (isWhole && !(isLast && (await isSame(deps, { asker, history, place })))) return undefined;
  if (!isLast) throw resultUnknown(results[0]?.index ?? 0);
  requireAllOf(calls, results);
  const outputs = new Map(results.map(({ toolCallId, content }) => [toolCallId, content]));
  return { turn, thread, handedBack: { turnId: turn.id, outputs } };
}

/** The turn that made the calls, and what it answered. */
interface Asker {
  turn: Turn;
  thread: Thread;
  /** All calls that it handed over. */
  calls: ToolCall[];
  /** The hash of the conversation that it answered. */
  conversation: Buffer;
}

/** The turn of the caller's that made these calls; undefined if there is none, or its thread has been deleted. */
async function findAsker(
  { database }: RouteDeps,
  caller: Caller,
  results: Conversation['results'],
): Promise<Asker | undefined> {
  const { Thread, ToolCall, Turn } = chatModels(database);
  const ids = [...new Set(results.map(({ toolCallId }) => toolCallId))];
  const call = await ToolCall.findOne({ where: { id: ids, waitsFor: 'client' } });
  const turn = call && (await Turn.findByPk(call.turnId));
  if (turn === null || turn.userId !== caller.userId) return undefined;
  const [thread, conversation, calls] = await Promise.all([
    Thread.open(turn.threadId),
    conversationOf(database, turn.id),
    ToolCall.findAll({ where: { turnId: turn.id, waitsFor: 'client' } }),
  ]);
  return thread === null || conversation === undefined ? undefined : { turn, thread, calls, conversation };
}

/** Calls of the last answer that have no result, if the request contains that answer. */
function requireAllInRequest(history: readonly ImportedMessage[]): void {
  const reply = splitReply(history)?.reply ?? [];
  const missing = reply.flatMap((part) => {
    return part.type === 'dynamic-tool' && part.state !== 'output-available' ? [part.toolCallId] : [];
  });
  if (missing.length > 0) throw resultMissing(missing);
}

function requireAllOf(calls: readonly ToolCall[], results: Conversation['results']): void {
  const given = new Set(results.map(({ toolCallId }) => toolCallId));
  const missing = calls.filter(({ id, status }) => status === 'pending' && !given.has(id));
  if (missing.length > 0) throw resultMissing(missing.map(({ id }) => id));
}

/**
 * A turn ends before its client hears of its end, so its client cannot be too early. A turn that an earlier version
 * left waiting for the client ends now.
 */
async function requireEnded(deps: RouteDeps, turn: Turn): Promise<void> {
  if (turn.isTerminal) return;
  const open = await chatModels(deps.database).ToolCall.openOf([turn.id]);
  if (turn.status !== 'waiting' || open.some(({ waitsFor }) => waitsFor !== 'client')) {
    const detail = 'The answer that made these calls has not ended. Send their results after its end.';
    throw new DomainError('conflict', 'TURN_NOT_ENDED', detail);
  }
  await endTurn(deps, turn.id, { status: 'completed', finishReason: 'tool-calls' });
  void deps.launcher.toolsAnswered(turn.id);
  await turn.reload();
}

/** Whether the request's conversation is what the turn answered, and its answer. */
async function isSame(
  { database }: RouteDeps,
  { asker, history, place }: { asker: Asker; history: readonly ImportedMessage[]; place: Place },
): Promise<boolean> {
  const { turn, thread, conversation } = asker;
  if ((thread.expiresAt === null) !== place.isKept) return false;
  if (place.spaceId !== undefined && place.spaceId !== turn.spaceId) return false;
  const split = splitReply(history);
  if (split === undefined || !hashOfConversation(split.before).equals(conversation)) return false;
  const answer = await chatModels(database).Message.find(thread.id, turn.assistantMessageId);
  return answer !== null && isSameReply(split.reply, answer.parts);
}
