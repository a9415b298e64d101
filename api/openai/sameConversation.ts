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
      return [part.mediaType, part.url];
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
  const reply = history.at(-1);
  if (reply?.role !== 'assistant') return undefined;
  const conversation = hashOfConversation(history.slice(0, -1));
  const said = textIn(reply.parts);
  for (const thread of await findAnswered(database, { userId, spaceId, conversation })) {
    const answer = await chatModels(database).Message.find(thread.threadId, thread.assistantMessageId);
    if (answer !== null && textIn(answer.parts) === said) return thread;
  }
  return undefined;
}

function textIn(parts: readonly StoredPart[]): string {
  return withoutSpaces(parts.map((part) => (part.type === 'text' ? part.text : '')).join(''));
}

function withoutSpaces(text: string): string {
  return text.replace(/\s+/g, '');
}
