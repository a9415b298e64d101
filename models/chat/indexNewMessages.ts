import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { addWords } from '../words/wordTable.ts';
import type { StoredPart } from './message.ts';
import { ownerKey, saidIn, textBits, threadWords } from './threadTexts.ts';

/** Where a message stands. */
export interface Place {
  threadId: string;
  turnOrdinal: number;
  position: number;
}

interface NewMessage extends Place {
  messageId: string;
  parts: string;
}

/** Indexes those of the messages that have no words yet, all at once, and returns the others. */
export async function indexNewMessages(database: Database, places: readonly Place[]): Promise<Place[]> {
  if (places.length === 0) return [];
  return transaction(database, async (tx) => {
    const found = await select<NewMessage>(
      tx,
      `SELECT thread_id AS threadId, turn_ordinal AS turnOrdinal, position, id AS messageId, parts FROM messages
        WHERE words_due = 1 AND pieces = 0 AND replaced_at IS NULL AND (${anyOf(places, isMessage)}) FOR UPDATE`,
      places.flatMap(keyOf),
    );
    if (found.length === 0) return [...places];
    const owners = await ownersOf(tx, found);
    const known = await numbersOf(tx, found);
    const fresh = found.filter((message) => owners.has(message.threadId) && !known.has(nameOf(message)));
    const said = fresh.map((message) => ({ ...message, text: saidIn(JSON.parse(message.parts) as StoredPart[]) }));
    const speaking = said.filter(({ text }) => text !== '');
    if (speaking.length > 0) {
      const names = speaking.map(({ threadId, messageId }) => [threadId, messageId]);
      await execute(tx, 'INSERT INTO thread_texts (thread_id, message_id) VALUES ?', [names]);
      const numbers = await numbersOf(tx, speaking);
      const indexed = speaking.map((message) => ({
        owner: owners.get(message.threadId) as Buffer,
        thing: numbers.get(nameOf(message)) as number,
        bit: textBits.text,
        text: message.text,
      }));
      await addWords(threadWords, indexed, tx);
    }
    if (fresh.length > 0) {
      await execute(tx, `UPDATE messages SET words_due = 0 WHERE ${anyOf(fresh, isMessage)}`, fresh.flatMap(keyOf));
    }
    const done = new Set(fresh.map((message) => keyOf(message).join(' ')));
    return places.filter((place) => !done.has(keyOf(place).join(' ')));
  });
}

const isMessage = '(thread_id = ? AND turn_ordinal = ? AND position = ?)';
const isText = '(thread_id = ? AND message_id = ?)';
const anyOf = (rows: readonly unknown[], condition: string) => rows.map(() => condition).join(' OR ');
const keyOf = ({ threadId, turnOrdinal, position }: Place) => [threadId, turnOrdinal, position];
const nameOf = ({ threadId, messageId }: { threadId: string; messageId: string }) => `${threadId} ${messageId}`;

async function ownersOf(tx: Transaction, of: readonly Place[]): Promise<Map<string, Buffer>> {
  const threads = await select<{ id: string; spaceId: string; userId: string }>(
    tx,
    'SELECT id, space_id AS spaceId, user_id AS userId FROM threads WHERE id IN (?)',
    [[...new Set(of.map(({ threadId }) => threadId))]],
  );
  return new Map(threads.map((thread) => [thread.id, ownerKey(thread)]));
}

/** The numbers of those texts that have one, by name. */
async function numbersOf(tx: Transaction, of: readonly { threadId: string; messageId: string }[]) {
  const texts = await select<{ threadId: string; messageId: string; number: number }>(
    tx,
    `SELECT thread_id AS threadId, message_id AS messageId, number FROM thread_texts WHERE ${anyOf(of, isText)}`,
    of.flatMap(({ threadId, messageId }) => [threadId, messageId]),
  );
  return new Map(texts.map((text) => [nameOf(text), text.number]));
}
