import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { assistantPosition, type StoredPart, userPosition } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';

/** A message of a conversation that began elsewhere. */
export interface ImportedMessage {
  role: 'user' | 'assistant';
  parts: StoredPart[];
}

/**
 * Puts imported messages at the beginning of an empty thread. Their turn ids have no turn rows, and they are not
 * charged. Returns the id of the user's last message; undefined if there is none. The caller saves the thread.
 */
export async function importHistory(
  tx: Transaction,
  thread: Thread,
  messages: readonly ImportedMessage[],
  now: Date,
): Promise<string | undefined> {
  if (messages.length === 0) return undefined;
  let ordinal = 0;
  let turnId = '';
  const rows = messages.map(({ role, parts }, index) => {
    const answers = role === 'assistant' && messages[index - 1]?.role === 'user';
    if (!answers) {
      ordinal = thread.takeOrdinal();
      turnId = newId('turn');
    }
    const position = role === 'user' ? userPosition : assistantPosition;
    const id = newId('message');
    return { threadId: thread.id, turnOrdinal: ordinal, position, id, turnId, role, parts, createdAt: now };
  });
  await chatModels(tx).Message.bulkCreate(rows, { transaction: tx });
  return rows.findLast(({ role }) => role === 'user')?.id;
}
