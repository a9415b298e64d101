import { QueryTypes, type Transaction } from 'sequelize';
import { firstOf } from '../../base/text.ts';
import { type On, sequelizeOf, transactionOf } from '../database/bound.ts';
import type { Database } from '../database/database.ts';
import { insert } from '../database/sql.ts';
import type { StoredPart } from './message.ts';
import type { MessagePart } from './turnLog/foldChunks.ts';

/** A longer answer is stored in rows of this many characters each. They fit any packet and any column. */
const pieceCharacters = 128 * 1024;
/** How many rows are read at a time: about 8 MB. */
export const piecesAtOnce = 64;
const firstPieces = 8;
/** How many characters of text are kept of an answer that the database refuses. */
const keptCharacters = 32 * 1024;

/**
 * Splits parts into pieces of text, one part a line. A line may continue in the next piece; no character is cut in two.
 */
export function* piecesOf(parts: Iterable<StoredPart>): Generator<string> {
  let piece = '';
  for (const part of parts) {
    const line = `${JSON.stringify(part)}\n`;
    for (let at = 0; at < line.length; ) {
      let end = Math.min(line.length, at + pieceCharacters - piece.length);
      if (isHighSurrogate(line.charCodeAt(end - 1))) end++;
      piece += line.slice(at, end);
      at = end;
      if (piece.length < pieceCharacters) continue;
      yield piece;
      piece = '';
    }
  }
  if (piece !== '') yield piece;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/**
 * Stores an answer that is too long for its message's row. Returns the number of pieces; 0 for an answer that fits the
 * row.
 */
export async function storePieces(tx: Transaction, turnId: string, parts: Iterable<StoredPart>): Promise<number> {
  let count = 0;
  let held: string | undefined;
  for (const piece of piecesOf(parts)) {
    if (held !== undefined) await insert(tx, 'answer_pieces', { turnId, piece: count++, parts: held });
    held = piece;
  }
  if (count === 0 || held === undefined) return 0;
  await insert(tx, 'answer_pieces', { turnId, piece: count++, parts: held });
  return count;
}

/** The parts of an answer that was stored in pieces. */
export async function readPieces(
  { sequelize }: Pick<Database, 'sequelize'>,
  turnId: string,
  tx?: Transaction,
): Promise<StoredPart[]> {
  const parts: StoredPart[] = [];
  let rest = '';
  for (let from = 0; ; from += piecesAtOnce) {
    const [rows] = await sequelize.query(
      'SELECT parts FROM answer_pieces WHERE turn_id = ? AND piece >= ? ORDER BY piece LIMIT ?',
      { replacements: [turnId, from, piecesAtOnce], ...(tx && { transaction: tx }) },
    );
    for (const { parts: piece } of rows as { parts: string }[]) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) parts.push(JSON.parse(line) as StoredPart);
    }
    if (rows.length < piecesAtOnce) return parts;
  }
}

/** The leading parts of an answer in pieces that end within its first {@link firstPieces} pieces (1 MB of text). */
export async function readFirstPieces(on: On, turnId: string): Promise<StoredPart[]> {
  const rows = await sequelizeOf(on).query<{ parts: string }>(
    'SELECT parts FROM answer_pieces WHERE turn_id = ? ORDER BY piece LIMIT ?',
    { replacements: [turnId, firstPieces], type: QueryTypes.SELECT, transaction: transactionOf(on) },
  );
  const lines = rows
    .map(({ parts }) => parts)
    .join('')
    .split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as StoredPart);
}

/** The beginning of an answer that cannot be stored whole: its first 32 K characters of text. */
export function beginningOf(parts: readonly MessagePart[]): MessagePart[] {
  let room = keptCharacters;
  const kept: MessagePart[] = [];
  for (const part of parts) {
    if (part.type !== 'text' || room === 0) continue;
    const text = firstOf(part.text, room).toWellFormed();
    room -= text.length;
    kept.push({ type: 'text', text, state: 'done' });
  }
  return kept;
}
