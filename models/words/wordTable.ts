import type { raw } from 'mysql2';
import type { Transaction } from 'sequelize';
import { execute, type Statement } from '../database/sql.ts';
import { wordsOf } from './words.ts';

/**
 * An index of words: a row says that a word is in something of an owner's, and by the bits of `fields`, where in it.
 * FULLTEXT would read every match of every owner; this is one range of an index, in pages of any size.
 */
export interface WordTable {
  table: string;
  /** The column of the owner. Its index goes on with the word, and with the thing, the newest first. */
  owner: string;
  /** The column of the thing that has the word. Numbers of later things are higher. */
  thing: string;
}

export interface IndexedText {
  owner: number | Buffer;
  /** Its number, or SQL for it. */
  thing: number | ReturnType<typeof raw>;
  /** The bit of the field that the text is in. */
  bit: number;
  text: string;
}

const rowsPerStatement = 1_000;

/**
 * Replaces the words that a thing has in a field, in the transaction that changes it: what is there can be found, and
 * nothing else. An empty text has no words.
 */
export async function storeWords(table: WordTable, of: IndexedText, tx: Transaction): Promise<void> {
  const { table: name, thing } = table;
  await execute(tx, `DELETE FROM ${name} WHERE ${thing} = ? AND fields = ?`, [of.thing, of.bit]);
  await execute(tx, `UPDATE ${name} SET fields = fields & (255 - ?) WHERE ${thing} = ?`, [of.bit, of.thing]);
  await addWords(table, [of], tx);
}

/** Adds the words of things that have none in these fields yet. */
export async function addWords(table: WordTable, texts: readonly IndexedText[], tx: Transaction): Promise<void> {
  for (const { sql, values } of wordInsertions(table, texts)) await execute(tx, sql, values);
}

/** The statements that do so: none where there are no words, and several where there are many. */
export function wordInsertions({ table, owner, thing }: WordTable, texts: readonly IndexedText[]): Statement[] {
  const rows = texts.flatMap((of) =>
    [...wordsOf(of.text)].map((word) => [of.owner, Buffer.from(word), of.thing, of.bit]),
  );
  const sql = `INSERT INTO ${table} (${owner}, word, ${thing}, fields) VALUES ?
    ON DUPLICATE KEY UPDATE fields = ${table}.fields | VALUES(fields)`;
  const statements: Statement[] = [];
  for (let at = 0; at < rows.length; at += rowsPerStatement) {
    statements.push({ sql, values: [rows.slice(at, at + rowsPerStatement)] });
  }
  return statements;
}
