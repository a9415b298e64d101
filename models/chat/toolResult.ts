import { wellFormed } from '../../base/text.ts';
import type { ToolCall } from './toolCall.ts';
import type { UiChunk } from './turnLog/chunks.ts';

/** The result of a tool call as it is logged. Its text is always well-formed. */
export type ResultChunk = Extract<UiChunk, { type: 'tool-output-available' | 'tool-output-error' }>;

export function succeededResult(toolCallId: string, output: unknown): ResultChunk {
  return { type: 'tool-output-available', toolCallId, output: wellFormed(output), dynamic: true };
}

export function failedResult(toolCallId: string, errorText: string): ResultChunk {
  return { type: 'tool-output-error', toolCallId, errorText: errorText.toWellFormed(), dynamic: true };
}

/** The status of the call's row for this result. */
export function statusOf(result: ResultChunk): 'succeeded' | 'failed' {
  return result.type === 'tool-output-available' ? 'succeeded' : 'failed';
}

/** The chunk with the state of a call's approval; none for a call that needs no approval. */
export function approvalChunks(call: ToolCall, state: 'asked' | 'approved' | 'denied' | 'expired'): UiChunk[] {
  if (call.waitsFor !== 'approval') return [];
  const { id: toolCallId, turnId, toolName, deadlineAt, target } = call;
  const expiresAt = deadlineAt?.toISOString() ?? '';
  const host = target?.host === undefined ? {} : { host: target.host };
  const data = { turnId, toolCallId, toolName, state, expiresAt, ...host };
  return [{ type: 'data-approval', transient: true, data }];
}
