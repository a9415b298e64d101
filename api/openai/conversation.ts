import { firstOf } from '../../base/text.ts';
import type { ImportedMessage } from '../../models/chat/importHistory.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import type { BodyOf } from '../frame/request.ts';
import { checkPlainData } from '../frame/textFaults.ts';
import { givenByUrl, givenFile } from './givenFiles.ts';
import { refused, resultUnknown } from './refusals.ts';

const maxTitleLength = 80;

export type CompletionBody = BodyOf<'createChatCompletion'>;
type CompletionMessage = CompletionBody['messages'][number];

interface ToolResult {
  toolCallId: string;
  content: string;
  index: number;
  /** Whether the request contains the call as well. */
  hasCall: boolean;
}

/** The messages of a request, in our terms. */
export interface Conversation {
  /** The texts of its system and developer messages. */
  instructions: string | undefined;
  /**
   * The messages up to the last one of the assistant. User and assistant alternate. Their files are as they were given:
   * `keepFiles` fetches and stores them.
   */
  history: ImportedMessage[];
  /** The user's messages since. */
  news: StoredPart[];
  /** The tool results after the last assistant message, by the index of their message. */
  results: ToolResult[];
}

/**
 * For the calls and results of a request together. The contract limits messages, and the calls of a message, but their
 * product would be ten million.
 */
const maxCallsAndResults = 10_000;

type Call = Extract<StoredPart, { type: 'dynamic-tool' }>;
/** The calls of the last message, by their ids. */
type Calls = Map<string, Call>;

/**
 * Reads the messages of a request. Consecutive messages of one role become one message. Throws 400 for messages that no
 * conversation can have: `CONTENT_UNSUPPORTED`, `CONTENT_REQUIRED`, `TOOL_RESULT_UNKNOWN`, `TOO_MANY_TOOL_CALLS`, and
 * those of files.
 */
export function readConversation({ messages }: CompletionBody): Conversation {
  refuseTooMany(messages);
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
  const instructions: string[] = [];
  const history: ImportedMessage[] = [];
  const news: StoredPart[] = [];
  const results: Conversation['results'] = [];
  const calls: Calls = new Map();
  for (const [index, message] of messages.entries()) {
    const pointer = `/messages/${index}`;
    if (message.role === 'system' || message.role === 'developer') {
      const text = textOf(message, pointer);
      if (text !== '') instructions.push(text);
    } else if (message.role === 'tool') {
      const { tool_call_id: toolCallId = '' } = message;
      const content = textOf(message, pointer);
      if (toolCallId === '') {
        throw refused('CONTENT_REQUIRED', `${pointer}/tool_call_id`, 'A tool message needs `tool_call_id`.');
      }
      const hasCall = settle(calls, { toolCallId, content });
      // The thread may know the call of a result after the last answer.
      if (index > lastAnswer) results.push({ toolCallId, content, index, hasCall });
      else if (!hasCall) throw resultUnknown(index);
    } else if (message.role === 'user') {
      const parts = partsOf(message, pointer);
      if (index > lastAnswer) news.push(...parts);
      else if (add(history, 'user', parts)) calls.clear();
    } else {
      const parts = answerOf(message, pointer);
      add(history, 'assistant', parts);
      // Some programs number the calls of each answer from 0: results belong to the latest call with their id.
      for (const part of parts) if (part.type === 'dynamic-tool') calls.set(part.toolCallId, part);
    }
  }
  const instructed = instructions.join('\n\n') || undefined;
  // Some programs send only a system message: then it is the question.
  if (instructed !== undefined && history.length + news.length + results.length === 0) {
    return { instructions: undefined, history, news: [{ type: 'text', text: instructed, state: 'done' }], results };
  }
  return { instructions: instructed, history, news, results };
}

function refuseTooMany(messages: readonly CompletionMessage[]): void {
  let found = 0;
  for (const { role, tool_calls: calls } of messages) found += (calls?.length ?? 0) + (role === 'tool' ? 1 : 0);
  if (found > maxCallsAndResults) {
    const detail = `A request may have ${maxCallsAndResults} tool calls and results. This one has ${found}.`;
    throw refused('TOO_MANY_TOOL_CALLS', '/messages', detail);
  }
}

/** Adds parts to the last message, or as the next one. Returns whether there were any. */
function add(history: ImportedMessage[], role: ImportedMessage['role'], parts: StoredPart[]): boolean {
  if (parts.length === 0) return false;
  const last = history.at(-1);
  if (last?.role === role) last.parts.push(...parts);
  else history.push({ role, parts });
  return true;
}

/** Adds a tool's result to its call; false if the last message made no such call. */
function settle(calls: Calls, { toolCallId, content }: { toolCallId: string; content: string }): boolean {
  const call = calls.get(toolCallId);
  if (call === undefined) return false;
  Object.assign(call, { state: 'output-available', output: content, errorText: undefined });
  return true;
}

/** One step of the assistant: its text and its calls. */
function answerOf(message: CompletionMessage, pointer: string): StoredPart[] {
  const text = textOf(message, pointer);
  const parts: StoredPart[] = text === '' ? [] : [{ type: 'text', text, state: 'done' }];
  for (const { id, function: called } of message.tool_calls ?? []) {
    parts.push({
      type: 'dynamic-tool',
      toolName: called.name,
      toolCallId: id,
      state: 'output-error',
      input: inputOf(called.arguments),
      errorText: 'There is no result.',
    });
  }
  return parts.length === 0 ? [] : [{ type: 'step-start' }, ...parts];
}

/** A model may write JSON that does not parse, is not an object, or contains data that a body must not contain. */
function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    checkPlainData(value);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Return the text as it is.
  }
  return { arguments: text };
}

function textOf({ content }: CompletionMessage, pointer: string): string {
  if (typeof content === 'string') return content;
  return (content ?? [])
    .map((part, index) => {
      if (part.type === 'text' || part.type === 'refusal') return part.text ?? part.refusal ?? '';
      throw unsupported(part.type, `${pointer}/content/${index}`, 'text');
    })
    .join('');
}

/** The text and files of a user message. */
function partsOf({ content }: CompletionMessage, pointer: string): StoredPart[] {
  const given = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  return given.flatMap((part, index): StoredPart[] => {
    const at = `${pointer}/content/${index}`;
    if (part.type === 'text') return part.text ? [{ type: 'text', text: part.text, state: 'done' }] : [];
    if (part.type === 'image_url') return [givenByUrl(part.image_url?.url ?? '', `${at}/image_url/url`)];
    if (part.type === 'file') return [givenFile(part.file ?? {}, `${at}/file`)];
    throw unsupported(part.type, at, 'text, image_url and file');
  });
}

function unsupported(type: string, pointer: string, supported: string) {
  const detail = `Parts of the type ${type.slice(0, 40)} are not supported here, only ${supported}.`;
  return refused('CONTENT_UNSUPPORTED', pointer, detail);
}

/**
 * The first words of the user's first message, or the name of its first file: a model's title would cost more than many
 * such requests.
 */
export function titleOf({ history, news }: Pick<Conversation, 'history' | 'news'>): string {
  const parts = history.find(({ role }) => role === 'user')?.parts ?? news;
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  return titleFrom(text) || titleFrom(parts.map(fileNameOf).find(Boolean) ?? '') || 'Untitled';
}

function titleFrom(text: string): string {
  return firstOf(text.replace(/\s+/g, ' ').trim(), maxTitleLength).toWellFormed();
}

function fileNameOf(part: StoredPart): string | undefined {
  if (part.type === 'data-file') return part.data.fileName;
  return part.type === 'file' ? part.filename : undefined;
}
