import type { Transaction } from 'sequelize';
import type { TurnEnd } from './endTurn.ts';
import { chatModels } from './models.ts';
import type { Turn } from './turn.ts';
import type { TurnLimit, UiChunk, Usage } from './turnLog/chunks.ts';
import type { MessageFold } from './turnLog/foldChunks.ts';

/** The ends of the texts that are still open. */
export function closeTexts(fold: MessageFold): UiChunk[] {
  return fold.openTextIds().map(({ id, type }) => ({ type: `${type}-end`, id }));
}

/**
 * Gives every call without a result its recorded effect, or an error that it did not finish. The calls with which a
 * turn of OpenAI's API ends stay open.
 */
export async function closeTools(tx: Transaction, turnId: string, end: TurnEnd, fold: MessageFold): Promise<UiChunk[]> {
  if (end.status === 'completed' && end.finishReason === 'tool-calls') return [];
  const openIds = fold.openToolIds();
  // A call is in the log as soon as it has a row, and its result as soon as it is settled.
  if (openIds.length === 0) return [];
  const { ToolCall } = chatModels(tx);
  const pending = await ToolCall.pendingOf(turnId, tx);
  await ToolCall.settleRest(turnId, tx);
  const effects = new Map(pending.map(({ id, effect }) => [id, effect]));
  const errorText =
    end.status === 'stopped'
      ? 'The turn was stopped before this call finished.'
      : 'The turn ended before this call finished.';
  return openIds.map((toolCallId) => {
    const effect = effects.get(toolCallId);
    return effect
      ? { type: 'tool-output-available', toolCallId, output: effect.result, dynamic: true }
      : { type: 'tool-output-error', toolCallId, errorText, dynamic: true };
  });
}

const limits: Record<string, TurnLimit> = {
  STEP_LIMIT: 'steps',
  TIME_LIMIT: 'time',
  TOOL_CALL_LIMIT: 'tool-calls',
  TOOL_LOOP: 'tool-loop',
};

export function closingChunks(turn: Turn, end: TurnEnd, usage: Usage): UiChunk[] {
  const chunks: UiChunk[] = [turn.statusChunk(end.status)];
  if (end.status === 'completed') {
    chunks.push({ type: 'finish', finishReason: end.finishReason, messageMetadata: answerMetadata(turn, end, usage) });
  } else if (end.status === 'stopped') {
    chunks.push({ type: 'abort', reason: 'stopped' });
  } else {
    const limit = limits[end.code];
    if (limit !== undefined) chunks.push({ type: 'data-limit', transient: true, data: { limit, code: end.code } });
    chunks.push({ type: 'error', errorText: end.detail, code: end.code });
  }
  return chunks;
}

export function answerMetadata(turn: Turn, end: TurnEnd, usage: Usage): Record<string, unknown> {
  return {
    turnId: turn.id,
    threadId: turn.threadId,
    modelId: turn.modelId,
    status: end.status,
    ...(end.status === 'completed' && { finishReason: end.finishReason }),
    ...(end.status === 'failed' && { code: end.code }),
    usage,
  };
}
