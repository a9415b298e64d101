import { firstOf, lastOf } from '../../base/text.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type SearchPosition, searchWords, type WordRow } from '../words/search.ts';
import { placesOf, type WordPlace, wordsAskedFor } from '../words/words.ts';
import { readFirstPieces } from './answerPieces.ts';
import { ownerKey, saidIn, type TextField, textBits, threadWords, titleId } from './indexTexts.ts';
import type { MessagePlace, StoredPart } from './message.ts';

export interface ThreadSearch {
  spaceId: string;
  /** The user whose threads are searched. */
  userId: string;
  query: string;
  fields: readonly TextField[];
  limit: number;
  after?: SearchPosition | undefined;
}

/** A piece of a text, and the places of the found words in it. */
export interface Snippet {
  text: string;
  matches: WordPlace[];
}

export interface FoundText {
  thread: { id: string; title: string | null };
  /** Null for the title. */
  message: FoundMessage | null;
  snippet: Snippet;
}

export interface FoundMessage extends MessagePlace {
  id: string;
  turnId: string;
  role: 'user' | 'assistant';
  createdAt: Date;
}

interface TextRow {
  number: number;
  threadId: string;
  messageId: string;
  title: string | null;
}

/** UTF-16 units of a snippet before and after the beginning of the first word that was found. */
const before = 60;
const after = 180;

/** Finds titles and messages of the user's threads in a space, as {@link searchWords} describes. */
export async function searchThreads(
  database: Database,
  search: ThreadSearch,
): Promise<{ found: FoundText[]; next?: SearchPosition }> {
  const bits = search.fields.reduce((sum, field) => sum | textBits[field], 0);
  const { query, limit, after: position } = search;
  const request = { table: threadWords, owner: ownerKey(search), query, bits, limit, after: position };
  return searchWords(database, request, (rows) => open(database, rows, search));
}

/** Reads the texts behind the index's rows, each only when it is needed: a message may be long. */
async function* open(
  database: Database,
  rows: WordRow[],
  search: ThreadSearch,
): AsyncGenerator<{ row: WordRow; found: FoundText }> {
  const texts = await textsOf(database, rows, search);
  const asked = wordsAskedFor(search.query);
  for (const row of rows) {
    const text = texts.get(row.thing);
    const found = text && (await openText(database, text, asked));
    if (found !== undefined) yield { row, found };
  }
}

/** The texts by their numbers, limited to the user's own visible threads: another owner may share the short key. */
async function textsOf(
  database: Database,
  rows: WordRow[],
  { spaceId, userId }: ThreadSearch,
): Promise<Map<number, TextRow>> {
  if (rows.length === 0) return new Map();
  const sql = `SELECT x.number, x.thread_id, x.message_id, t.title
       FROM thread_texts x JOIN threads t ON t.id = x.thread_id
      WHERE x.number IN (?) AND t.space_id = ? AND t.user_id = ? AND t.deleted_at IS NULL
        AND t.expires_at IS NULL`;
  const texts = await select<TextRow>(database.pool, sql, [rows.map(({ thing }) => thing), spaceId, userId]);
  return new Map(texts.map((text) => [text.number, text]));
}

/** Undefined if the text has changed since it was indexed, or the answer was replaced. */
async function openText(
  database: Database,
  { threadId, messageId, title }: TextRow,
  asked: readonly string[],
): Promise<FoundText | undefined> {
  const thread = { id: threadId, title };
  if (messageId === titleId) {
    const snippet = snippetOf(title ?? '', asked);
    return snippet && { thread, message: null, snippet };
  }
  const [row] = await select<FoundMessage & { parts: string; pieces: number }>(
    database.pool,
    `SELECT id, turn_id, turn_ordinal, position, role, created_at, parts, pieces
       FROM messages WHERE thread_id = ? AND id = ? AND replaced_at IS NULL`,
    [threadId, messageId],
  );
  if (row === undefined) return undefined;
  const { parts, pieces, ...message } = row;
  const whole = pieces > 0 ? await readFirstPieces(database, message.turnId) : (JSON.parse(parts) as StoredPart[]);
  const snippet = snippetOf(saidIn(whole), asked);
  return snippet && { thread, message, snippet };
}

/** The text around the first found word; undefined if one of the words is missing. */
function snippetOf(whole: string, asked: readonly string[]): Snippet | undefined {
  const text = whole.normalize('NFC');
  const missing = new Set(asked);
  let start: number | undefined;
  for (const place of placesOf(text, asked)) {
    start ??= place.start;
    for (const each of place.found) missing.delete(each);
    if (missing.size === 0) break;
  }
  if (start === undefined || missing.size > 0) return undefined;
  const cut = lastOf(text.slice(0, start), before) + firstOf(text.slice(start), after);
  return { text: cut, matches: [...placesOf(cut, asked)].map(({ start: from, end }) => ({ start: from, end })) };
}
