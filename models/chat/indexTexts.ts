import { hash } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { firstOf } from '../../base/text.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { addWords, storeWords, type WordTable } from '../words/wordTable.ts';
import { readFirstPieces } from './answerPieces.ts';
import type { StoredPart } from './message.ts';

const rowsAtOnce = 100;

interface MessageRow {
  messageId: string;
  turnId: string;
  parts: string;
  pieces: number;
  isReplaced: number;
}

export interface Indexing {
  /** The most texts to index now; the rest waits for the next run. */
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
    const threads = await read<{ id: string }>(
      database,
      'SELECT id FROM threads FORCE INDEX (threads_words) WHERE words_due = 1 AND id > ? ORDER BY id LIMIT ?',
      [last, rowsAtOnce],
    );
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
    const places = await read<Place>(
      database,
      `SELECT thread_id AS threadId, turn_ordinal AS turnOrdinal, position FROM messages FORCE INDEX (messages_words)
        WHERE words_due = 1 AND thread_id >= ?
          AND (thread_id > ? OR turn_ordinal > ? OR (turn_ordinal = ? AND position > ?))
        ORDER BY thread_id, turn_ordinal, position LIMIT ?`,
      [
        last.threadId,
        last.threadId,
        last.turnOrdinal,
        last.turnOrdinal,
        last.position,
        Math.min(rowsAtOnce, most - count),
      ],
    );
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
    const [thread] = await select<{ spaceId: string; userId: string; title: string | null }>(
      tx,
      `SELECT space_id AS spaceId, user_id AS userId, title FROM threads
        WHERE id = ? AND words_due = 1 AND deleted_at IS NULL FOR UPDATE`,
      [id],
    );
    if (thread !== undefined) {
      await replaceWords(tx, { ...thread, threadId: id, messageId: titleId }, 'title', thread.title ?? '');
    }
    await execute(tx, 'UPDATE threads SET words_due = 0 WHERE id = ?', [id]);
  });
}

/** Locks the message's row, so that a later purge finds its words. */
async function indexMessage(database: Database, { threadId, turnOrdinal, position }: Place): Promise<void> {
  const key = [threadId, turnOrdinal, position];
  await transaction(database, async (tx) => {
    const [message] = await select<MessageRow>(
      tx,
      `SELECT id AS messageId, turn_id AS turnId, parts, pieces, replaced_at IS NOT NULL AS isReplaced FROM messages
        WHERE thread_id = ? AND turn_ordinal = ? AND position = ? AND words_due = 1 FOR UPDATE`,
      key,
    );
    const [owner] = await select<{ spaceId: string; userId: string }>(
      tx,
      'SELECT space_id AS spaceId, user_id AS userId FROM threads WHERE id = ?',
      [threadId],
    );
    if (message === undefined || owner === undefined) return;
    const { messageId, turnId, isReplaced } = message;
    const parts = message.pieces > 0 ? await readFirstPieces(tx, turnId) : (JSON.parse(message.parts) as StoredPart[]);
    await replaceWords(tx, { ...owner, threadId, messageId }, 'text', isReplaced === 1 ? '' : saidIn(parts));
    await execute(
      tx,
      'UPDATE messages SET words_due = 0 WHERE thread_id = ? AND turn_ordinal = ? AND position = ?',
      key,
    );
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

async function read<Row>({ pool }: Database, sql: string, values: unknown[]): Promise<Row[]> {
  const [rows] = await pool.query(sql, values);
  return rows as Row[];
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

/** Indexes those messages that have no words yet in one transaction, and returns the others. */
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

/** The numbers of the texts that are indexed, by name. */
async function numbersOf(tx: Transaction, of: readonly { threadId: string; messageId: string }[]) {
  const texts = await select<{ threadId: string; messageId: string; number: number }>(
    tx,
    `SELECT thread_id AS threadId, message_id AS messageId, number FROM thread_texts WHERE ${anyOf(of, isText)}`,
    of.flatMap(({ threadId, messageId }) => [threadId, messageId]),
  );
  return new Map(texts.map((text) => [nameOf(text), text.number]));
}
