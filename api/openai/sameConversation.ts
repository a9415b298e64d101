import { createHash } from 'node:crypto';
import { type AnsweredThread, findAnswered } from '../../models/chat/completions.ts';
import type { ImportedMessage } from '../../models/chat/importHistory.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Database } from '../../models/database/database.ts';

/** A hash of a conversation. Clients trim the texts that they send back, so spaces do not count. */
export function hashOfConversation(messages: readonly ImportedMessage[]): Buffer {
  const said = messages.map(({ role, parts }) => [role, parts.map(essenceOf)]);
  return createHash('sha256').update(JSON.stringify(said)).digest();
}

function essenceOf(part: StoredPart): unknown {
  switch (part.type) {
    case 'text':
      return withoutSpaces(part.text);
    case 'file':
      return [part.mediaType, createHash('sha256').update(part.url).digest('base64')];
    case 'dynamic-tool':
      return [part.toolCallId, part.toolName, part.input, part.output];
    default:
      return part.type;
  }
}

/**
 * The thread that a client continues if it sends the whole conversation: the thread's last answer is the last message
 * of `history`, and the messages before it are those that it answered. Undefined if anything differs.
 */
export async function findContinued(
  database: Database,
  { userId, spaceId, history }: { userId: string; spaceId: string; history: readonly ImportedMessage[] },
): Promise<AnsweredThread | undefined> {
  const split = splitReply(history);
  if (split === undefined) return undefined;
  const conversation = hashOfConversation(split.before);
  for (const thread of await findAnswered(database, { userId, spaceId, conversation })) {
    const answer = await chatModels(database).Message.find(thread.threadId, thread.assistantMessageId);
    if (answer !== null && isSameReply(split.reply, answer.parts)) return thread;
  }
  return undefined;
}

/**
 * The last answer of a history, and what it answered. Each assistant message of a request was one answer, and consecutive
 * ones are the steps of one message here. Undefined if the history does not end with an answer.
 */
export function splitReply(
  history: readonly ImportedMessage[],
): { before: ImportedMessage[]; reply: StoredPart[] } | undefined {
  const last = history.at(-1);
  if (last?.role !== 'assistant') return undefined;
  const start = last.parts.findLastIndex(({ type }) => type === 'step-start');
  const earlier = last.parts.slice(0, Math.max(0, start));
  const before = history.slice(0, -1);
  if (earlier.length > 0) before.push({ role: 'assistant', parts: earlier });
  return { before, reply: last.parts.slice(Math.max(0, start)) };
}

/**
 * Whether a client's copy of an answer is that answer: the same text, and the same calls of its own tools. Calls of the
 * space's tools were not shown to it.
 */
export function isSameReply(reply: readonly StoredPart[], answer: readonly StoredPart[]): boolean {
  const made = new Map(callsIn(answer));
  const copied = new Map(callsIn(reply));
  if ([...copied].some(([id, essence]) => made.get(id) !== essence)) return false;
  const isLeftOut = (part: StoredPart) =>
    part.type === 'dynamic-tool' && part.state === 'input-available' && !copied.has(part.toolCallId);
  return !answer.some(isLeftOut) && textIn(reply) === textIn(answer);
}

function callsIn(parts: readonly StoredPart[]): [string, string][] {
  return parts.flatMap((part): [string, string][] => {
    if (part.type !== 'dynamic-tool') return [];
    return [[part.toolCallId, JSON.stringify([part.toolName, part.input ?? {}])]];
  });
}

function textIn(parts: readonly StoredPart[]): string {
  return withoutSpaces(parts.map((part) => (part.type === 'text' ? part.text : '')).join(''));
}

function withoutSpaces(text: string): string {
  return text.replace(/\s+/g, '');
}
