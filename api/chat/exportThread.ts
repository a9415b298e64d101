import { type Message, type StoredPart, userPosition } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { Database } from '../../models/database/database.ts';
import { time } from '../frame/times.ts';
import { presentMessage, presentThread } from './presentThread.ts';

const messagesPerRead = 100;

/** A thread as one JSON document, in pieces: the thread as `getThread` returns it, and its messages. */
export async function* exportJson(database: Database, thread: Thread): AsyncGenerator<string> {
  yield `{"thread":${JSON.stringify(presentThread(thread))},"messages":[`;
  let separator = '\n';
  for await (const message of messagesOf(database, thread)) {
    yield `${separator}${JSON.stringify(presentMessage(message))}`;
    separator = ',\n';
  }
  yield '\n]}\n';
}

/** A thread as CommonMark for people, with tool calls as code blocks. */
export async function* exportMarkdown(database: Database, thread: Thread): AsyncGenerator<string> {
  yield `# ${oneLine(thread.title ?? 'Chat')}\n`;
  for await (const message of messagesOf(database, thread)) {
    yield `\n## ${message.position === userPosition ? 'Question' : 'Answer'}, ${time(message.createdAt)}\n`;
    for (const part of message.parts) {
      const text = asMarkdown(part);
      if (text !== '') yield `\n${text}\n`;
    }
  }
}

/** Page by page, up to the last message at the beginning: a long thread is never in memory as a whole. */
async function* messagesOf(database: Database, thread: Thread): AsyncGenerator<Message> {
  const { Message } = chatModels(database);
  const upToOrdinal = thread.nextTurnOrdinal - 1;
  for (let after: Message | undefined; ; ) {
    const { messages, hasMore } = await Message.page({
      threadId: thread.id,
      upToOrdinal,
      limit: messagesPerRead,
      ...(after && { after: { turnOrdinal: after.turnOrdinal, position: after.position } }),
    });
    yield* messages;
    after = messages.at(-1);
    if (!hasMore || after === undefined) return;
  }
}

function asMarkdown(part: StoredPart): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'source-url':
      return `Source: <${part.url.replace(/[<>\s]/g, encodeURIComponent)}> ${oneLine(part.title ?? '')}`.trimEnd();
    case 'data-file':
      return `File: ${inCode(part.data.fileName)}`;
    case 'dynamic-tool': {
      const given = part.output === undefined ? part.errorText : part.output;
      const blocks = [part.input, given].flatMap((value) => (value === undefined ? [] : [block(value)]));
      return [`Tool ${inCode(part.toolName)}`, ...blocks].join('\n\n');
    }
    default:
      return '';
  }
}

function block(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  const fence = fenceFor(text, 3);
  return `${fence}${typeof value === 'string' ? '' : 'json'}\n${text}\n${fence}`;
}

function inCode(text: string): string {
  const fence = fenceFor(text, 1);
  return `${fence} ${oneLine(text)} ${fence}`;
}

/** A fence longer than any in the text, so that the text cannot close it. */
function fenceFor(text: string, least: number): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), least - 1);
  return '`'.repeat(longest + 1);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
