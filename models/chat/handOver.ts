import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { execute } from '../database/sql.ts';
import { storePieces } from './answerPieces.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';
import type { Turn } from './turn.ts';

/**
 * Results of the calls with which a turn of OpenAI's API has ended. The turn that is made with them continues its
 * answer.
 */
export interface HandedBack {
  /** The turn that made the calls. */
  turnId: string;
  /** By the ids of the calls. */
  outputs: ReadonlyMap<string, unknown>;
}

/**
 * Adds the results to the message of the turn that made the calls, each once, and returns that turn. It must be the
 * thread's last one: otherwise 409 `THREAD_HAS_GONE_ON`. The caller holds the lock of the thread's row.
 */
export async function takeBack(tx: Transaction, thread: Thread, { turnId, outputs }: HandedBack): Promise<Turn> {
  const { Message, ToolCall, Turn } = chatModels(tx);
  const turn = await Turn.lockRow(turnId, tx);
  if (turn === null || turn.threadId !== thread.id || turn.ordinal + 1 !== thread.nextTurnOrdinal) throw threadGoneOn();
  const message = await Message.find(thread.id, turn.assistantMessageId, tx);
  if (message === null) throw threadGoneOn();
  const parts = message.parts.map((part) => {
    if (part.type !== 'dynamic-tool' || part.state !== 'input-available' || !outputs.has(part.toolCallId)) return part;
    return { ...part, state: 'output-available' as const, output: outputs.get(part.toolCallId) };
  });
  await execute(tx, 'DELETE FROM answer_pieces WHERE turn_id = ?', [turn.id]);
  const pieces = await storePieces(tx, turn.id, parts);
  await Message.update(
    { parts: pieces === 0 ? parts : [], pieces },
    { where: { threadId: thread.id, id: message.id }, transaction: tx },
  );
  const now = new Date();
  await ToolCall.update(
    { status: 'succeeded', answeredAt: now, endedAt: now },
    { where: { turnId, id: [...outputs.keys()], status: 'pending' }, transaction: tx },
  );
  return turn;
}

export function threadGoneOn(): DomainError {
  const detail = 'The thread has gone on meanwhile. Send the request again, with the whole conversation.';
  return new DomainError('conflict', 'THREAD_HAS_GONE_ON', detail);
}
