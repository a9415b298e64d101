import type { Message, MessagePlace } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { FoundText } from '../../models/chat/search.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Usage } from '../../models/chat/turnLog/chunks.ts';
import { readLastSeqs } from '../../models/chat/turnLog/tails.ts';
import type { Database } from '../../models/database/database.ts';
import { encodeCursor } from '../../models/database/pages.ts';
import type { Scope } from '../../models/identity/scopes.ts';

/** `waiting` are the ids of turns that wait for their client. */
export function presentThread(thread: Thread, waiting: ReadonlySet<string> = new Set()) {
  return {
    id: thread.id,
    spaceId: thread.spaceId,
    title: thread.title,
    activeTurnId: thread.activeTurnId,
    needsInput: thread.activeTurnId !== null && waiting.has(thread.activeTurnId),
    createdAt: thread.createdAt.toISOString(),
    updatedAt: thread.updatedAt.toISOString(),
  };
}

/** `calls` are the turn's calls that still need an answer, `lastSeq` is the last number of its log. */
function presentTurn(
  turn: Turn,
  { usage, calls, lastSeq }: { usage: Usage; calls: readonly ToolCall[]; lastSeq: number },
) {
  return {
    id: turn.id,
    threadId: turn.threadId,
    spaceId: turn.spaceId,
    status: turn.status,
    mode: turn.mode,
    modelId: turn.modelId,
    effort: turn.effort,
    scopes: turn.scopes as Scope[] | null,
    userMessageId: turn.userMessageId,
    assistantMessageId: turn.assistantMessageId,
    finishReason: turn.finishReason,
    error: turn.errorCode === null ? null : { code: turn.errorCode, detail: turn.errorDetail ?? '' },
    usage,
    lastSeq,
    pendingToolCalls: turn.isTerminal
      ? []
      : calls.filter(({ turnId }) => turnId === turn.id).flatMap(presentPendingCall),
    createdAt: turn.createdAt.toISOString(),
    startedAt: turn.startedAt?.toISOString() ?? null,
    endedAt: turn.endedAt?.toISOString() ?? null,
  };
}

function presentPendingCall({ id: toolCallId, toolName, input, waitsFor, deadlineAt, target }: ToolCall) {
  // A call that needs no answer is running.
  if (waitsFor === 'nothing') return [];
  const expiresAt = deadlineAt?.toISOString() ?? null;
  return [{ toolCallId, toolName, input, waitsFor, deadlineAt: expiresAt, host: target?.host ?? null }];
}

export function presentMessage(message: Message) {
  return {
    id: message.id,
    role: message.role,
    parts: message.parts,
    metadata: message.metadata,
    turnId: message.turnId,
    createdAt: message.createdAt.toISOString(),
  };
}

/** The content of a message list's cursor: ordinal and position. */
export const messageKey = /^\d{1,9} ([01]|-?0\.5)$/;

export function placeOf(key: string | undefined): MessagePlace | undefined {
  const [turnOrdinal, position] = key?.split(' ').map(Number) ?? [];
  return turnOrdinal === undefined || position === undefined ? undefined : { turnOrdinal, position };
}

export function messageKeyOf({ turnOrdinal, position }: MessagePlace): string {
  return `${turnOrdinal} ${position}`;
}

export function presentFoundText({ thread, message, snippet }: FoundText) {
  if (message === null) return { thread, message, snippet };
  const { id, turnId, role, createdAt } = message;
  // The place just before the message, so that a list that continues there begins with it.
  const cursor = encodeCursor(messageKeyOf({ ...message, position: message.position - 0.5 }));
  return { thread, message: { id, turnId, role, createdAt: createdAt.toISOString(), cursor }, snippet };
}

/** Turns with their usage, their waiting calls and the ends of their logs: one query of each for all turns. */
export async function presentTurns(database: Database, turns: readonly Turn[]) {
  const { ModelCall, ToolCall } = chatModels(database);
  const ids = turns.map(({ id }) => id);
  const [usageOf, calls, lastSeqOf] = await Promise.all([
    ModelCall.usageOfMany(ids),
    ToolCall.openOf(ids),
    readLastSeqs(database, turns),
  ]);
  return turns.map((turn) => presentTurn(turn, { usage: usageOf(turn.id), calls, lastSeq: lastSeqOf(turn.id) }));
}

export async function presentOneTurn(database: Database, turn: Turn) {
  const [presented] = await presentTurns(database, [turn]);
  if (presented === undefined) throw new Error('Unreachable: a turn is presented for each that is given.');
  return presented;
}
