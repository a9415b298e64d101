import { hash } from 'node:crypto';
import { firstOf } from '../../base/text.ts';
import type { WordTable } from '../words/wordTable.ts';
import type { StoredPart } from './message.ts';

export const threadWords: WordTable = { table: 'thread_words', owner: 'owner', thing: 'text_number' };

/** Where a word stands. */
export const textBits = { title: 1, text: 2 } as const;
export type TextField = keyof typeof textBits;

/** In `thread_texts`, a title is the text of no message. */
export const titleId = '';

/** How much of a message can be found. */
const searchedCharacters = 100_000;

/** Whose texts these are, in short. What it finds may be another's, who has the same by chance: look at the thread. */
export function ownerKey({ spaceId, userId }: { spaceId: string; userId: string }): Buffer {
  return hash('sha256', `${spaceId}/${userId}`, 'buffer').subarray(0, 8);
}

/** What was said in a message, without what was thought and what tools gave. */
export function saidIn(parts: readonly StoredPart[]): string {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return firstOf(texts.join('\n'), searchedCharacters);
}
