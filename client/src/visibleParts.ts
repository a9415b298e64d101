import type { UIMessage, UIMessageChunk } from 'ai';

/** The server's notice that a step begins again after a failure. The parts in `discard` must no longer be shown. */
interface Attempt {
  type: 'data-attempt';
  data: { step: number; attempt: number; discard: string[] };
}

/** The server's notice of a call that runs only with a person's approval. */
interface Approval {
  toolCallId: string;
  state: 'asked' | 'approved' | 'denied' | 'expired';
}

/**
 * The question in the form of AI SDK 6 and later: part of the call, answered by `addToolApprovalResponse`. Earlier SDKs
 * ignore it.
 */
function* approvalRequest({ toolCallId, state }: Approval): Generator<UIMessageChunk> {
  if (state === 'asked') yield { type: 'tool-approval-request', approvalId: toolCallId, toolCallId };
}

/**
 * Adds the server's part id to each part of a message, and keeps notices of new attempts in the message. An AI SDK
 * client builds messages from chunks, and no chunk can remove a part. Approvals become the SDK's own.
 */
export async function* nameParts(chunks: AsyncIterable<UIMessageChunk>): AsyncGenerator<UIMessageChunk> {
  for await (const chunk of chunks) {
    switch (chunk.type) {
      case 'text-start':
      case 'text-end':
      case 'reasoning-start':
      case 'reasoning-end':
        yield { ...chunk, providerMetadata: { ...chunk.providerMetadata, atrium: { partId: chunk.id } } };
        break;
      case 'data-attempt':
        yield { ...chunk, transient: false };
        break;
      case 'data-approval':
        yield chunk;
        yield* approvalRequest(chunk.data as Approval);
        break;
      default:
        yield chunk;
    }
  }
}

/**
 * The parts of a message to show: without parts that a later attempt discarded, and without parts that are no content.
 */
export function visibleParts<Message extends UIMessage>(message: Message): Message['parts'] {
  const attempts = (message.parts as unknown as { type: string }[]).filter(isAttempt);
  const discarded = new Set(attempts.flatMap(({ data }) => data.discard));
  return message.parts.filter((part) => !isAttempt(part) && !discarded.has(idOf(part) ?? '')) as Message['parts'];
}

function isAttempt(part: { type: string }): part is Attempt {
  return part.type === 'data-attempt';
}

function idOf(part: object): string | undefined {
  const { toolCallId, providerMetadata } = part as {
    toolCallId?: string;
    providerMetadata?: { atrium?: { partId?: string } };
  };
  return toolCallId ?? providerMetadata?.atrium?.partId;
}
