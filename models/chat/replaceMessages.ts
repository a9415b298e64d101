import { Op, type Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { SendIntent } from './acceptMessage.ts';
import { type Message, type StoredPart, userPosition } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** The message in question; undefined for an edit of a message that the thread never had, which is treated as new. */
export async function findReplaced(tx: Transaction, thread: Thread, intent: SendIntent): Promise<Message | undefined> {
  const ofUser = { threadId: thread.id, role: 'user', replacedAt: null };
  const message = await chatModels(tx).Message.findOne({
    where: intent.userMessageId === undefined ? ofUser : { ...ofUser, id: intent.userMessageId },
    order: [['turnOrdinal', 'DESC']],
    transaction: tx,
  });
  if (message === null && intent.replaces === 'again') throw notFound('message to answer again');
  return message ?? undefined;
}

/**
 * Moves a message of the user to the thread's end, with other words where there are any. Everything after it is
 * replaced: its answers and later messages are hidden, summaries that cover them are removed, and turns that are still
 * working on them stop. Returns the running one of these. The thread's row is locked by the caller.
 */
export async function replaceFrom(
  tx: Transaction,
  thread: Thread,
  message: Message,
  change: { turnId: string; ordinal: number; now: Date; parts?: StoredPart[] },
): Promise<string | undefined> {
  const { Message, ThreadSummary, Turn } = chatModels(tx);
  const { turnId, ordinal, now, parts } = change;
  const from = message.turnOrdinal;
  const place = { threadId: thread.id, turnOrdinal: from, position: userPosition };
  // Its place in the order is its key, so it moves by itself: first out of the range that is replaced.
  await Message.update(
    { turnOrdinal: ordinal, turnId, ...(parts && { parts, wordsDue: 1 }) },
    { where: place, transaction: tx },
  );
  await Message.update(
    { replacedAt: now, wordsDue: 1 },
    {
      where: { threadId: thread.id, turnOrdinal: { [Op.gte]: from, [Op.lt]: ordinal }, replacedAt: null },
      transaction: tx,
    },
  );
  await ThreadSummary.dropFrom(thread.id, from, tx);
  const unended = await Turn.findAll({
    where: { threadId: thread.id, ordinal: { [Op.gte]: from }, terminal: 0 },
    attributes: ['id'],
    transaction: tx,
  });
  const ids = unended.map(({ id }) => id);
  if (ids.length > 0) {
    await Turn.update({ stopRequestedAt: now }, { where: { id: ids, stopRequestedAt: null }, transaction: tx });
  }
  return ids.find((id) => id === thread.activeTurnId);
}
