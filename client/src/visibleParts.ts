import type { UIMessage, UIMessageChunk } from 'ai';

/** What the server says when a step begins again after a failure: these parts are not to be shown any more. */
interface Attempt {
  type: 'data-attempt';
  data: { step: number; attempt: number; discard: string[] };
}

/** What the server says of a call that may run only when somebody allows it. */
interface Approval {
  toolCallId: string;
  state: 'asked' | 'approved' | 'denied' | 'expired';
}

/**
 * The question as clients of AI SDK 6 and later have it in the call's own part, to be answered by
 * `addToolApprovalResponse`. Earlier ones let it go by.
 */
function* approvalRequest({ toolCallId, state }: Approval): Generator<UIMessageChunk> {
  if (state === 'asked') yield { type: 'tool-approval-request', approvalId: toolCallId, toolCallId };
}

/**
 * Gives each part of a message the id that the server knows it by, and keeps what it says of new attempts in the
 * message: clients of the AI SDK put a message together from chunks, and have no chunk that takes a part back. Approvals
 * become that SDK's own.
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
 * The parts of a message to show: without those that a later attempt has taken back, and without parts that are not
 * content.
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
