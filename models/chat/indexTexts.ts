import { hash } from 'node:crypto';
import { Op, type Transaction } from 'sequelize';
import { firstOf } from '../../base/text.ts';
import { type Database, transaction } from '../database/database.ts';
import { along } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { addWords, storeWords, type WordTable } from '../words/wordTable.ts';
import { readFirstPieces } from './answerPieces.ts';
import type { StoredPart } from './message.ts';
import { chatModels } from './models.ts';

const rowsAtOnce = 100;

export interface Indexing {
  /** The most texts to index now. The next run indexes the rest. */
  most: number;
  onBatch(): void;
  /** Called for a text that could not be indexed; the next run tries again. */
  onFailure(threadId: string, error: unknown): void;
}

/**
 * Indexes the messages and titles that are new, changed or replaced, and returns their number. A text that fails does
 * not stop the others.
 */
export async function indexDueTexts(database: Database, indexing: Indexing): Promise<number> {
  const titles = await indexTitles(database, indexing);
  return titles + (await indexMessages(database, { ...indexing, most: indexing.most - titles }));
}

async function indexTitles(database: Database, { most, onBatch, onFailure }: Indexing): Promise<number> {
  let count = 0;
  for (let last = ''; count < most; ) {
    const threads = await chatModels(database).Thread.findAll({
      attributes: ['id'],
      where: { wordsDue: 1, id: { [Op.gt]: last } },
      order: [['id', 'ASC']],
      limit: rowsAtOnce,
      ...along('threads_words'),
      raw: true,
    });
    for (const { id } of threads) await indexTitle(database, id).catch((error: unknown) => onFailure(id, error));
    onBatch();
    count += threads.length;
    last = threads.at(-1)?.id ?? last;
    if (threads.length < rowsAtOnce) return count;
  }
  return count;
}

/** New messages are indexed in batches, since every turn leaves two; all others one by one. */
async function indexMessages(database: Database, { most, onBatch, onFailure }: Indexing): Promise<number> {
  let count = 0;
  let last: Place = { threadId: '', turnOrdinal: 0, position: 0 };
  while (count < most) {
    const { threadId, turnOrdinal, position } = last;
    const places: Place[] = await chatModels(database).Message.findAll({
      attributes: ['threadId', 'turnOrdinal', 'position'],
      where: {
        wordsDue: 1,
        threadId: { [Op.gte]: threadId },
        [Op.or]: [
          { threadId: { [Op.gt]: threadId } },
          { turnOrdinal: { [Op.gt]: turnOrdinal } },
          { turnOrdinal, position: { [Op.gt]: position } },
        ],
      },
      order: [
        ['threadId', 'ASC'],
        ['turnOrdinal', 'ASC'],
        ['position', 'ASC'],
      ],
      limit: Math.min(rowsAtOnce, most - count),
      ...along('messages_words'),
      raw: true,
    });
    onBatch();
    const others = await indexNewMessages(database, places).catch(() => places);
    for (const place of others) {
      await indexMessage(database, place).catch((error: unknown) => onFailure(place.threadId, error));
    }
    count += places.length;
    last = places.at(-1) ?? last;
    if (places.length < rowsAtOnce) break;
  }
  return count;
}

/** Locks the thread's row, so that a thread that is being deleted gets no more words. */
async function indexTitle(database: Database, id: string): Promise<void> {
  await transaction(database, async (tx) => {
    const { Thread } = chatModels(tx);
    const where = { id, wordsDue: 1, deletedAt: null };
    const thread = await Thread.findOne({ where, transaction: tx, lock: tx.LOCK.UPDATE });
    if (thread !== null) {
      const { spaceId, userId, title } = thread;
      await replaceWords(tx, { spaceId, userId, threadId: id, messageId: titleId }, 'title', title ?? '');
    }
    await Thread.update({ wordsDue: 0 }, { where: { id }, transaction: tx });
  });
}

/** Locks the message's row, so that a later purge finds its words. */
async function indexMessage(database: Database, place: Place): Promise<void> {
  await transaction(database, async (tx) => {
    const { Message, Thread } = chatModels(tx);
    const { threadId } = place;
    const message = await Message.findOne({
      where: { ...place, wordsDue: 1 },
      transaction: tx,
      lock: tx.LOCK.UPDATE,
    });
    const thread = await Thread.findByPk(threadId, { attributes: ['spaceId', 'userId'], transaction: tx });
    if (message === null || thread === null) return;
    const { spaceId, userId } = thread;
    const parts = message.pieces > 0 ? await readFirstPieces(tx, message.turnId) : message.parts;
    const text = message.replacedAt === null ? saidIn(parts) : '';
    await replaceWords(tx, { spaceId, userId, threadId, messageId: message.id }, 'text', text);
    await Message.update({ wordsDue: 0 }, { where: { ...place }, transaction: tx });
  });
}

async function replaceWords(
  tx: Transaction,
  of: { threadId: string; messageId: string; spaceId: string; userId: string },
  field: TextField,
  text: string,
): Promise<void> {
  const { threadId, messageId } = of;
  const [known] = await select<{ number: number }>(
    tx,
    'SELECT number FROM thread_texts WHERE thread_id = ? AND message_id = ?',
    [threadId, messageId],
  );
  if (known === undefined && text === '') return;
  const number =
    known?.number ??
    (await execute(tx, 'INSERT INTO thread_texts (thread_id, message_id) VALUES (?, ?)', [threadId, messageId]))
      .insertId;
  const indexed = { owner: ownerKey(of), thing: number, bit: textBits[field], text };
  if (known === undefined) await addWords(threadWords, [indexed], tx);
  else await storeWords(threadWords, indexed, tx);
}

export const threadWords: WordTable = { table: 'thread_words', owner: 'owner', thing: 'text_number' };

/** The fields in which a word can stand, as bits. */
export const textBits = { title: 1, text: 2 } as const;
export type TextField = keyof typeof textBits;

/** The message id under which `thread_texts` has a thread's title. */
export const titleId = '';

/** How much of a message is indexed. */
const searchedCharacters = 100_000;

/** A short hash of the owner. Two owners may share one by chance, so a search checks the thread as well. */
export function ownerKey({ spaceId, userId }: { spaceId: string; userId: string }): Buffer {
  return hash('sha256', `${spaceId}/${userId}`, 'buffer').subarray(0, 8);
}

/** The text of a message, without its reasoning and tool results. */
export function saidIn(parts: readonly StoredPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return firstOf(texts.join('\n'), searchedCharacters);
}

type Place = {
  threadId: string;
  turnOrdinal: number;
  position: number;
};

/** Indexes those messages that have no words yet in one transaction, and returns the others. */
async function indexNewMessages(database: Database, places: readonly Place[]): Promise<Place[]> {
  if (places.length === 0) return [];
  return transaction(database, async (tx) => {
    const { Message } = chatModels(tx);
    const where = { wordsDue: 1, pieces: 0, replacedAt: null, [Op.or]: places };
    const rows = await Message.findAll({ where, transaction: tx, lock: tx.LOCK.UPDATE });
    const found = rows.map(({ threadId, turnOrdinal, position, id: messageId, parts }) => {
      return { threadId, turnOrdinal, position, messageId, text: saidIn(parts) };
    });
    if (found.length === 0) return [...places];
    const owners = await ownersOf(tx, found);
    const known = await numbersOf(tx, found);
    const fresh = found.filter((message) => owners.has(message.threadId) && !known.has(nameOf(message)));
    const speaking = fresh.filter(({ text }) => text !== '');
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
      await Message.update({ wordsDue: 0 }, { where: { [Op.or]: fresh.map(placeOf) }, transaction: tx });
    }
    const done = new Set(fresh.map(keyOf));
    return places.filter((place) => !done.has(keyOf(place)));
  });
}

const placeOf = ({ threadId, turnOrdinal, position }: Place): Place => ({ threadId, turnOrdinal, position });
const keyOf = (place: Place) => Object.values(placeOf(place)).join(' ');
const nameOf = ({ threadId, messageId }: { threadId: string; messageId: string }) => `${threadId} ${messageId}`;

async function ownersOf(tx: Transaction, of: readonly Place[]): Promise<Map<string, Buffer>> {
  const threads = await chatModels(tx).Thread.findAll({
    attributes: ['id', 'spaceId', 'userId'],
    where: { id: [...new Set(of.map(({ threadId }) => threadId))] },
    transaction: tx,
    raw: true,
  });
  return new Map(threads.map((thread) => [thread.id, ownerKey(thread)]));
}

/** The numbers of the texts that are indexed, by name. */
async function numbersOf(tx: Transaction, of: readonly { threadId: string; messageId: string }[]) {
  const texts = await select<{ threadId: string; messageId: string; number: number }>(
    tx,
    `SELECT thread_id, message_id, number FROM thread_texts
      WHERE ${of.map(() => '(thread_id = ? AND message_id = ?)').join(' OR ')}`,
    of.flatMap(({ threadId, messageId }) => [threadId, messageId]),
  );
  return new Map(texts.map((text) => [nameOf(text), text.number]));
}
