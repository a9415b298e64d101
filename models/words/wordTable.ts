import { QueryTypes, type Transaction } from 'sequelize';
import { sequelizeOf } from '../bound.ts';
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
  thing: number;
  /** It has no words yet. */
  isNew?: boolean;
}

const rowsPerStatement = 1_000;

/**
 * Replaces the words that a thing has in a field, in the transaction that changes it: what is there can be found, and
 * nothing else. An empty text has no words.
 */
export async function storeWords(
  { table, owner, thing }: WordTable,
  of: IndexedText,
  { bit, text }: { bit: number; text: string },
  tx: Transaction,
): Promise<void> {
  const run = (sql: string, replacements: unknown[]) =>
    sequelizeOf(tx).query(sql, { replacements, type: QueryTypes.RAW, transaction: tx });
  if (of.isNew !== true) {
    await run(`DELETE FROM ${table} WHERE ${thing} = ? AND fields = ?`, [of.thing, bit]);
    await run(`UPDATE ${table} SET fields = fields & (255 - ?) WHERE ${thing} = ?`, [bit, of.thing]);
  }
  await addWords({ table, owner, thing }, [{ ...of, text }], bit, tx);
}

/** Adds the words of a field of several things that have none in it yet. */
export async function addWords(
  { table, owner, thing }: WordTable,
  texts: readonly (IndexedText & { text: string })[],
  bit: number,
  tx: Transaction,
): Promise<void> {
  const rows = texts.flatMap((of) => [...wordsOf(of.text)].map((word) => [of.owner, Buffer.from(word), of.thing, bit]));
  for (let at = 0; at < rows.length; at += rowsPerStatement) {
    const sql = `INSERT INTO ${table} (${owner}, word, ${thing}, fields) VALUES ?
      ON DUPLICATE KEY UPDATE fields = ${table}.fields | VALUES(fields)`;
    const replacements = [rows.slice(at, at + rowsPerStatement)];
    await sequelizeOf(tx).query(sql, { replacements, type: QueryTypes.RAW, transaction: tx });
  }
}
