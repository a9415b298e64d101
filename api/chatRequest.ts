import type { FileReference, StoredPart } from '../models/chat/message.ts';
import { DomainError } from '../models/errors.ts';
import type { BodyOf } from './request.ts';

export type ChatStreamBody = BodyOf<'streamChat'>;
type UiMessage = NonNullable<ChatStreamBody['messages']>[number];

/** What a body says, whichever of its two dialects it is written in. */
export interface ReadMessage {
  parts: StoredPart[];
  userMessageId: string | undefined;
  regenerate: boolean;
}

/**
 * Reads the user's message from a body: spec.md's `content` and `files`, or the AI SDK's `messages`, of which the last one counts,
 * since the thread is the server's.
 */
export function readMessage(body: ChatStreamBody): ReadMessage {
  const files: StoredPart[] = (body.files ?? []).map((file) => ({ type: 'data-file', data: file as FileReference }));
  if (body.content !== undefined) {
    const parts: StoredPart[] = [{ type: 'text', text: body.content, state: 'done' }, ...files];
    return { parts, userMessageId: body.userMessageId, regenerate: false };
  }
  const message = body.messages?.findLast(({ role }) => role === 'user');
  if (message === undefined) {
    throw new DomainError('unprocessable', 'NO_USER_MESSAGE', 'None of the messages is the user’s.');
  }
  const parts = [...partsOf(message), ...files];
  if (parts.length === 0) {
    throw new DomainError('unprocessable', 'EMPTY_MESSAGE', 'The last user message has neither text nor a file.');
  }
  return {
    parts,
    userMessageId: body.userMessageId ?? message.id,
    regenerate: body.trigger === 'regenerate-message',
  };
}

/** Text and files; whatever else a client keeps in its messages is its own. */
function partsOf(message: UiMessage): StoredPart[] {
  const parts: StoredPart[] = [];
  for (const part of (message.parts ?? []) as Record<string, unknown>[]) {
    if (part.type === 'text' && typeof part.text === 'string' && part.text !== '') {
      parts.push({ type: 'text', text: part.text, state: 'done' });
    }
    if (part.type === 'file' && typeof part.url === 'string' && typeof part.mediaType === 'string') {
      const { url, mediaType, filename } = part;
      parts.push({ type: 'file', url, mediaType, ...(typeof filename === 'string' && { filename }) });
    }
  }
  return parts;
}

/** What the client said of its device, as it came. */
export function readContext(body: ChatStreamBody): Record<string, unknown> {
  const { openTabs, agentContextSnapshot, deviceComputerId } = body;
  return {
    ...(openTabs !== undefined && { openTabs }),
    ...(agentContextSnapshot !== undefined && { agentContextSnapshot }),
    ...(deviceComputerId !== undefined && { deviceComputerId }),
  };
}
