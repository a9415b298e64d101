import type { Transaction } from 'sequelize';
import { addWords, type IndexedText, storeWords, type WordTable } from '../words/wordTable.ts';

/** The fields in which a word occurs. A row's `fields` is a sum of these. */
export const fieldBits = { name: 1, text: 2 } as const;
export type Field = keyof typeof fieldBits;

export const driveWords: WordTable = { table: 'drive_words', owner: 'drive_number', thing: 'item_number' };

export interface Indexed {
  driveNumber: number;
  itemNumber: number;
}

/**
 * Replaces the words of an item's name or text, in the transaction that changes it, so that the index always equals the
 * content. An empty text has no words.
 */
export async function indexWords(item: Indexed, field: Field, text: string, tx: Transaction): Promise<void> {
  const { driveNumber: owner, itemNumber: thing } = item;
  await storeWords(driveWords, { owner, thing, bit: fieldBits[field], text }, tx);
}

export interface NewlyIndexed extends Record<Field, string> {
  driveNumber: number;
  itemNumber: number;
}

/** Writes the words of items that have none yet. */
export async function indexNewItems(items: readonly NewlyIndexed[], tx: Transaction): Promise<void> {
  await addWords(driveWords, items.flatMap(textsOf), tx);
}

function textsOf({ driveNumber: owner, itemNumber: thing, name, text }: NewlyIndexed): IndexedText[] {
  return [
    { owner, thing, bit: fieldBits.name, text: name },
    { owner, thing, bit: fieldBits.text, text },
  ];
}
