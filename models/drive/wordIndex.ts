import { QueryTypes, type Transaction } from 'sequelize';
import { sequelizeOf } from '../bound.ts';
import { wordsOf } from './words.ts';

/** Where a word stands; a row's `fields` is the sum of those that hold. */
export const fieldBits = { name: 1, text: 2 } as const;
export type Field = keyof typeof fieldBits;

const rowsPerStatement = 1_000;

export interface Indexed {
  driveNumber: number;
  itemNumber: number;
  /** It has no words of the field yet. */
  isNew?: boolean;
}

/**
 * Replaces the words of an item's name, or of its text, in the transaction that changes it: what is there can be found,
 * and nothing else. An empty text has no words.
 */
export async function indexWords(item: Indexed, field: Field, text: string, tx: Transaction): Promise<void> {
  const bit = fieldBits[field];
  const run = (sql: string, replacements: unknown[]) =>
    sequelizeOf(tx).query(sql, { replacements, type: QueryTypes.RAW, transaction: tx });
  if (item.isNew !== true) {
    await run('DELETE FROM drive_words WHERE item_number = ? AND fields = ?', [item.itemNumber, bit]);
    await run('UPDATE drive_words SET fields = fields & (255 - ?) WHERE item_number = ?', [bit, item.itemNumber]);
  }
  const rows = [...wordsOf(text)].map((word) => [item.driveNumber, Buffer.from(word), item.itemNumber, bit]);
  for (let at = 0; at < rows.length; at += rowsPerStatement) {
    await run(
      `INSERT INTO drive_words (drive_number, word, item_number, fields) VALUES ?
         ON DUPLICATE KEY UPDATE fields = drive_words.fields | VALUES(fields)`,
      [rows.slice(at, at + rowsPerStatement)],
    );
  }
}
