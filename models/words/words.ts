import { firstBytesOf } from '../../base/text.ts';

/** How many different words of one text are kept. */
const maxWords = 2_000;
const maxWordBytes = 64;
const maxWordsAskedFor = 10;

/** Scripts that are written without spaces are cut into single characters, all of which a search must find. */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{M}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]+/gv;
const hump = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u;

/**
 * The words of a name or a text in the form that is looked up: without case and accents. `camelCase` and `v2` give the
 * whole word and its parts.
 */
export function wordsOf(text: string): Set<string> {
  const words = new Set<string>();
  for (const [whole] of text.normalize('NFC').matchAll(word)) {
    for (const part of [whole, ...whole.split(hump)]) words.add(foldWord(part));
    if (words.size >= maxWords) break;
  }
  words.delete('');
  return words;
}

/** The words of a query as typed: `camelCase` is one word here. */
export function wordsAskedFor(query: string): string[] {
  const asked = [...query.normalize('NFC').matchAll(word)].map(([whole]) => foldWord(whole));
  return [...new Set(asked)].filter((each) => each !== '').slice(0, maxWordsAskedFor);
}

/** The place of a word in a text, in UTF-16 units. `end` is exclusive. */
export interface WordPlace {
  start: number;
  end: number;
}

/** The words of an NFC text that begin with an asked word, as a whole or in a part. `found` lists those asked words. */
export function* placesOf(text: string, asked: readonly string[]): Generator<WordPlace & { found: string[] }> {
  for (const { 0: whole, index: start } of text.matchAll(word)) {
    const parts = [whole, ...whole.split(hump)].map(foldWord);
    const found = asked.filter((each) => parts.some((part) => part.startsWith(each)));
    if (found.length > 0) yield { found, start, end: start + whole.length };
  }
}

function foldWord(text: string): string {
  const folded = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  // Cut at a whole character, so that an asked word is cut like the stored one.
  return firstBytesOf(folded, maxWordBytes);
}
