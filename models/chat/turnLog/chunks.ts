/**
 * The chunks of the AI SDK UI Message Stream, version 1, that Atrium emits: only those that its clients of
 * the major versions 5, 6 and 7 all accept. https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
 */

export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
/** The finish reasons of an answer that ends its turn. */
export type AnswerEnd = Exclude<FinishReason, 'tool-calls' | 'error'>;

/** Tokens that one turn has used so far, summed over its model calls. */
export interface Usage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

export type TurnStatus = 'queued' | 'running' | 'waiting' | 'completed' | 'stopped' | 'failed';

export type UiChunk =
  | { type: 'start'; messageId?: string; messageMetadata?: Record<string, unknown> }
  | { type: 'start-step' }
  | { type: 'finish-step' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string; providerMetadata?: unknown }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; toolCallId: string; toolName: string; dynamic?: boolean }
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | {
      type: 'tool-input-available';
      toolCallId: string;
      toolName: string;
      input: unknown;
      dynamic?: boolean;
      providerMetadata?: unknown;
    }
  | {
      type: 'tool-input-error';
      toolCallId: string;
      toolName: string;
      input: unknown;
      errorText: string;
      dynamic?: boolean;
    }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown; dynamic?: boolean }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string; dynamic?: boolean }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; url: string; mediaType: string }
  /** The turn's state. Transient: clients get it through `onData`; it is not part of the message. */
  | {
      type: 'data-turn';
      transient: true;
      data: { turnId: string; threadId: string; userMessageId: string; status: TurnStatus };
    }
  /** A step begins again after a failure: clients drop the parts with these ids. */
  | { type: 'data-attempt'; transient: true; data: { step: number; attempt: number; discard: string[] } }
  /** The state of a tool call's approval. Answered by POST /chat/turns/{turnId}/approvals/{toolCallId}. */
  | {
      type: 'data-approval';
      transient: true;
      data: {
        turnId: string;
        toolCallId: string;
        toolName: string;
        state: 'asked' | 'approved' | 'denied' | 'expired';
        expiresAt: string;
        /** The host of the server that the call goes to; missing if the call stays in Atrium. */
        host?: string;
      };
    }
  /**
   * Live output of a running call; the result repeats it. `position` is the number of bytes up to the end of this
   * piece. `isCut`: there is more output, which is not shown.
   */
  | {
      type: 'data-tool-output';
      transient: true;
      data: {
        toolCallId: string;
        stream: 'stdout' | 'stderr' | 'pty';
        text: string;
        position: number;
        isCut?: boolean;
      };
    }
  /** The limit that ends the turn, before its error. */
  | { type: 'data-limit'; transient: true; data: { limit: TurnLimit; code: string } }
  | { type: 'finish'; finishReason: FinishReason; messageMetadata?: Record<string, unknown> }
  | { type: 'abort'; reason?: string }
  /** `code` is the problem+json code of the same failure. */
  | { type: 'error'; errorText: string; code: string };

/** The limits that end a turn. */
export type TurnLimit = 'steps' | 'time' | 'tool-calls' | 'tool-loop';

export type DeltaChunk = Extract<UiChunk, { type: 'text-delta' | 'reasoning-delta' }>;

export function isDelta(chunk: UiChunk): chunk is DeltaChunk {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta';
}
