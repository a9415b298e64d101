import type { Transaction } from 'sequelize';
import { execute } from '../database/sql.ts';
import { wordsOf } from './words.ts';

/**
 * An index of words: a row says that a word occurs in an owner's thing, and the bits of `fields` say in which fields.
 * FULLTEXT would read every match of every owner; this reads one range of an index, in pages of any size.
 */
export interface WordTable {
  table: string;
  /** The column of the owner. Its index continues with the word, and then the thing, newest first. */
  owner: string;
  /** The column of the thing that has the word. Later things have higher numbers. */
  thing: string;
}

export interface IndexedText {
  owner: number | Buffer;
  thing: number;
  /** The bit of the field that the text is in. */
  bit: number;
  text: string;
}

const rowsPerStatement = 1_000;

/**
 * Replaces the words of a thing's field, in the transaction that changes the text, so that the index always matches it.
 * An empty text has no words.
 */
export async function storeWords(table: WordTable, of: IndexedText, tx: Transaction): Promise<void> {
  const { table: name, thing } = table;
  await execute(tx, `DELETE FROM ${name} WHERE ${thing} = ? AND fields = ?`, [of.thing, of.bit]);
  await execute(tx, `UPDATE ${name} SET fields = fields & (255 - ?) WHERE ${thing} = ?`, [of.bit, of.thing]);
  await addWords(table, [of], tx);
}

/** Adds the words of things that have none in these fields yet. */
export async function addWords(
  { table, owner, thing }: WordTable,
  texts: readonly IndexedText[],
  tx: Transaction,
): Promise<void> {
  const rows = texts.flatMap((of) =>
    [...wordsOf(of.text)].map((word) => [of.owner, Buffer.from(word), of.thing, of.bit]),
  );
  const sql = `INSERT INTO ${table} (${owner}, word, ${thing}, fields) VALUES ?
    ON DUPLICATE KEY UPDATE fields = ${table}.fields | VALUES(fields)`;
  for (let at = 0; at < rows.length; at += rowsPerStatement) {
    await execute(tx, sql, [rows.slice(at, at + rowsPerStatement)]);
  }
}
