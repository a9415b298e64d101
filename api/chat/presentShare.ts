import { firstOf } from '../../base/text.ts';
import { type Message, type StoredPart, userPosition } from '../../models/chat/message.ts';
import type { ThreadShare } from '../../models/chat/shares.ts';
import { time } from '../frame/times.ts';

/** How much is shown of a text and of a tool's input and result, in UTF-16 units. */
const textCharacters = 100_000;
const toolCharacters = 10_000;
const partsShown = 1_000;
const titleCharacters = 300;
const addressCharacters = 4_000;
const nameCharacters = 1_000;

export function presentShare(share: ThreadShare) {
  return {
    id: share.id,
    threadId: share.threadId,
    toolCalls: share.toolCalls,
    fileNames: share.fileNames,
    laterMessages: share.upToOrdinal === null,
    createdAt: time(share.createdAt),
    expiresAt: share.expiresAt === null ? null : time(share.expiresAt),
  };
}

export type SharedPart =
  | { type: 'text'; text: string }
  | { type: 'source'; url: string; title: string }
  | { type: 'file'; name: string }
  | { type: 'tool'; toolName: string; input: string; output: string | null };

/**
 * The parts of a message that readers of a link see: texts, the sources that they name, and what the link's creator
 * chose. Ids, reasoning and the contents of files are never shown.
 */
export function presentSharedMessage(message: Message, share: Pick<ThreadShare, 'toolCalls' | 'fileNames'>) {
  return {
    role: message.position === userPosition ? ('user' as const) : ('assistant' as const),
    parts: message.parts.flatMap((part) => sharedPart(part, share)).slice(0, partsShown),
    createdAt: time(message.createdAt),
  };
}

function sharedPart(
  part: StoredPart,
  { toolCalls, fileNames }: Pick<ThreadShare, 'toolCalls' | 'fileNames'>,
): SharedPart[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [{ type: 'text', text: firstOf(part.text, textCharacters) }];
    case 'source-url':
      return isWebAddress(part.url)
        ? [{ type: 'source', url: part.url, title: firstOf(part.title ?? part.url, titleCharacters) }]
        : [];
    case 'data-file':
      return fileNames ? [{ type: 'file', name: firstOf(part.data.fileName, nameCharacters) }] : [];
    case 'dynamic-tool':
      return toolCalls ? [sharedCall(part)] : [];
    default:
      return [];
  }
}

function sharedCall({ toolName, input, output, errorText }: Extract<StoredPart, { type: 'dynamic-tool' }>): SharedPart {
  const given = output === undefined ? errorText : output;
  return {
    type: 'tool',
    toolName,
    input: input === undefined ? '' : asText(input),
    output: given === undefined ? null : asText(given),
  };
}

function asText(value: unknown): string {
  return firstOf(typeof value === 'string' ? value : JSON.stringify(value, null, 2), toolCharacters);
}

function isWebAddress(url: string): boolean {
  return url.length <= addressCharacters && URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol);
}
