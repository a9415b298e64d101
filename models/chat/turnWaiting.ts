import type { Transaction } from 'sequelize';
import { noteEvent } from '../webhooks/events.ts';
import { chatModels } from './models.ts';
import type { ToolCall } from './toolCall.ts';
import type { Turn } from './turn.ts';
import type { UiChunk } from './turnLog/chunks.ts';
import type { CommittedSegment } from './turnLog/entry.ts';
import type { TurnLog } from './turnLog/turnLog.ts';

/**
 * How a turn begins to wait for its client and continues afterwards. Each response is a complete stream: it ends with
 * `finish` when the turn begins to wait, and the next one begins with a `start` without an id, which continues the same
 * message. The caller holds the turn's lock.
 */
export type NextState = 'running' | 'waiting';

/** Appends chunks to a turn and sets whether it runs or waits from now on. */
export async function tell(
  tx: Transaction,
  turnLog: TurnLog,
  turn: Turn,
  chunks: readonly UiChunk[],
  next: NextState,
): Promise<CommittedSegment> {
  const isWaiting = turn.status === 'waiting';
  const all: UiChunk[] = [
    ...(isWaiting ? [startOf(turn)] : []),
    ...(isWaiting && next === 'running' ? [turn.statusChunk('running')] : []),
    ...chunks,
    ...(next === 'waiting' ? [...(isWaiting ? [] : [turn.statusChunk('waiting')]), finishOf(turn)] : []),
  ];
  const segment = await turnLog.appendLocked(tx, turn, all, { changes: { status: next } });
  if (next === 'waiting' && !isWaiting) {
    const { id, threadId, spaceId } = turn;
    const data = { turnId: id, threadId, spaceId, status: 'waiting' };
    await noteEvent(tx, { id: `turn.needs_input:${id}:${segment.lastSeq}`, type: 'turn.needs_input', spaceId, data });
  }
  return segment;
}

/** The calls of a turn that still need an answer. */
export async function openCalls(turnId: string, tx: Transaction): Promise<ToolCall[]> {
  return (await chatModels(tx).ToolCall.pendingOf(turnId, tx)).filter(({ isOpen }) => isOpen);
}

/**
 * The turn's state after one of its calls is answered. It keeps waiting for the other calls, unless a call can run now.
 */
export function nextState(turn: Turn, open: readonly ToolCall[], isToRun: boolean): NextState {
  return turn.status === 'waiting' && open.length > 0 && !isToRun ? 'waiting' : 'running';
}

function startOf({ id: turnId, threadId, modelId }: Turn): UiChunk {
  return { type: 'start', messageMetadata: { turnId, threadId, modelId } };
}

function finishOf({ id: turnId, threadId, modelId }: Turn): UiChunk {
  const messageMetadata = { turnId, threadId, modelId, status: 'waiting', finishReason: 'tool-calls' };
  return { type: 'finish', finishReason: 'tool-calls', messageMetadata };
}
