import type { Transaction } from 'sequelize';
import { storeWords, type WordTable } from '../words/wordTable.ts';

/** Where a word stands; a row's `fields` is the sum of those that hold. */
export const fieldBits = { name: 1, text: 2 } as const;
export type Field = keyof typeof fieldBits;

export const driveWords: WordTable = { table: 'drive_words', owner: 'drive_number', thing: 'item_number' };

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
  const { driveNumber: owner, itemNumber: thing, isNew } = item;
  await storeWords(driveWords, { owner, thing, ...(isNew && { isNew }) }, { bit: fieldBits[field], text }, tx);
}
