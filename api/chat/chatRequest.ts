import { createHash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import { firstOf } from '../../base/text.ts';
import { readDataUrl } from '../../models/chat/attachments.ts';
import type { FileReference, StoredPart } from '../../models/chat/message.ts';
import type { BodyOf } from '../frame/request.ts';

export type ChatStreamBody = BodyOf<'streamChat'>;
type UiMessage = NonNullable<ChatStreamBody['messages']>[number];

/** The user message of a body, from either dialect. */
export interface ReadMessage {
  parts: StoredPart[];
  /** Files given by reference, not looked up yet. */
  files: FileReference[];
  userMessageId: string | undefined;
  /** The message replaces an earlier one and everything after it, either unchanged (to be answered again) or edited. */
  replaces: 'again' | 'edited' | undefined;
}

/**
 * Reads the user's message from a body: `content` and `files`, or the AI SDK's `messages`. Of those only the last one
 * counts, since the server keeps the thread.
 */
export function readMessage(body: ChatStreamBody): ReadMessage {
  const files = (body.files ?? []) as FileReference[];
  if (body.content !== undefined) {
    const parts: StoredPart[] = [{ type: 'text', text: body.content, state: 'done' }];
    return { parts, files, userMessageId: body.userMessageId, replaces: undefined };
  }
  const message = body.messages?.findLast(({ role }) => role === 'user');
  if (message === undefined) {
    throw new DomainError('unprocessable', 'NO_USER_MESSAGE', 'None of the messages has the role user.');
  }
  const read = partsOf(message);
  if (read.parts.length + read.files.length + files.length === 0) {
    throw new DomainError('unprocessable', 'EMPTY_MESSAGE', 'The last user message has no text and no file.');
  }
  return {
    parts: read.parts,
    files: [...read.files, ...files],
    userMessageId: body.userMessageId ?? message.id,
    replaces: replacementOf(body, message),
  };
}

/**
 * Hashes the content and options of a message. The hash leaves out what may differ when the message is sent again: the
 * thread, which the client knows by then, and the state of its device.
 */
export function hashMessage({ parts, files, replaces, userMessageId }: ReadMessage, body: ChatStreamBody): Buffer {
  const { mode = 'ask', modelId, autoModel, effort } = body;
  const named = files.map(({ path, containerId, fileName }) => [path, containerId, fileName]);
  const replaced = replaces && [replaces, userMessageId];
  return createHash('sha256')
    .update(JSON.stringify([parts, named, replaced, mode, modelId, autoModel === true, effort]))
    .digest();
}

/** The AI SDK's `regenerate` and edits: the list ends with the message in question. */
function replacementOf(body: ChatStreamBody, message: UiMessage): ReadMessage['replaces'] {
  if (body.trigger === 'regenerate-message') return 'again';
  return body.messageId !== undefined && body.messageId === message.id ? 'edited' : undefined;
}

/** Text and files; anything else in a client's messages is ignored. */
function partsOf(message: UiMessage): { parts: StoredPart[]; files: FileReference[] } {
  const parts: StoredPart[] = [];
  const files: FileReference[] = [];
  for (const part of (message.parts ?? []) as Record<string, unknown>[]) {
    if (part.type === 'text' && typeof part.text === 'string' && part.text !== '') {
      parts.push({ type: 'text', text: part.text, state: 'done' });
    }
    if (part.type === 'file' && typeof part.url === 'string' && typeof part.mediaType === 'string') {
      const { url, mediaType, filename } = part;
      if (!url.startsWith('data:')) throw refusedUrl('FILE_URL_UNSUPPORTED', noRemoteFiles);
      if (readDataUrl(url) === undefined) throw refusedUrl('FILE_URL_INVALID', 'This data: URL cannot be read.');
      parts.push({ type: 'file', url, mediaType, ...(typeof filename === 'string' && { filename }) });
    }
    // A file by reference, as our own message list returns it.
    if (part.type === 'data-file') files.push(...referenceIn(part.data));
  }
  return { parts, files };
}

/** The contract leaves the parts of AI SDK messages to that SDK, so references are checked here. */
function referenceIn(data: unknown): FileReference[] {
  const { path, containerId, fileName, width, height } = (data ?? {}) as Record<string, unknown>;
  if (typeof path !== 'string') return [];
  return [
    {
      path,
      ...(typeof containerId === 'string' && { containerId }),
      ...(typeof fileName === 'string' && { fileName: firstOf(fileName, maxFileNameLength) }),
      ...(typeof width === 'number' && { width }),
      ...(typeof height === 'number' && { height }),
    },
  ];
}

const maxFileNameLength = 1_024;

const noRemoteFiles =
  'Files are not fetched from other URLs. Send the file as a data: URL, or upload it and name it in `files`.';

function refusedUrl(code: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail, { errors: [{ pointer: '/messages', detail }] });
}

/** The state of the client's device, unchanged. */
export function readContext(body: ChatStreamBody): Record<string, unknown> {
  const { openTabs, agentContextSnapshot, deviceComputerId, clientTools } = body;
  return {
    ...(openTabs !== undefined && { openTabs }),
    ...(agentContextSnapshot !== undefined && { agentContextSnapshot }),
    ...(deviceComputerId !== undefined && { deviceComputerId }),
    ...(clientTools !== undefined && { clientTools }),
  };
}

/** These prefixes are reserved for the server's own tools (docs/tools.md). */
const reservedAreas = [
  'app',
  'ask',
  'browser',
  'computer',
  'database',
  'device',
  'drive',
  'git',
  'mcp',
  'process',
  'tabs',
  'web',
];

/** Refuses a client's own tools whose names collide with ours, or with one another: 422. */
export function checkClientTools({ clientTools = [] }: Pick<ChatStreamBody, 'clientTools'>): void {
  for (const [index, { name }] of clientTools.entries()) {
    const area = name.split('_', 1)[0] ?? '';
    if (!reservedAreas.includes(area)) continue;
    throw refused('TOOL_NAME_RESERVED', `/clientTools/${index}/name`, `Tools named ${area}_… are the server’s own.`);
  }
  checkNamesDiffer({ clientTools }, (index) => `/clientTools/${index}/name`);
}

/** Refuses two client tools of one name: 422. */
export function checkNamesDiffer(
  { clientTools = [] }: Pick<ChatStreamBody, 'clientTools'>,
  pointerOf: (index: number) => string,
): void {
  const seen = new Set<string>();
  for (const [index, { name }] of clientTools.entries()) {
    if (seen.has(name)) throw refused('TOOL_NAME_TAKEN', pointerOf(index), 'Two client tools have this name.');
    seen.add(name);
  }
}

function refused(code: string, pointer: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail, { errors: [{ pointer, detail }] });
}
