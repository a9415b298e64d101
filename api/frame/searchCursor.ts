import { decodeCursor, encodeCursor } from '../../models/database/pages.ts';
import type { SearchPosition } from '../../models/words/search.ts';

const form = /^(\d) (\d{1,19}) (\S+)$/;

/** The cursor of a word search. Opaque to clients. One that does not decode is a 400. */
export function encodeSearch({ asked, thing, word }: SearchPosition): string {
  return encodeCursor(`${asked} ${thing} ${word}`);
}

export function decodeSearch(cursor: string | undefined): SearchPosition | undefined {
  const [, asked, thing, word] = form.exec(decodeCursor(cursor, form) ?? '') ?? [];
  return word === undefined ? undefined : { asked: Number(asked), thing: Number(thing), word };
}
