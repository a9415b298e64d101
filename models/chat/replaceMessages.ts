import { Op, type Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { SendIntent } from './acceptMessage.ts';
import { type Message, type StoredPart, userPosition } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** The message to replace. Undefined if the thread never had the edited message, which is then treated as new. */
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
 * Moves a user message to the thread's end, with a new text if `parts` are given. Everything after it is replaced:
 * answers and later messages are hidden, summaries that cover them are deleted, and turns that still work on them are
 * asked to stop. Returns the running one of these turns. The caller holds the lock of the thread's row.
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
  // A message's place is its key, so it is moved out of the replaced range first.
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
