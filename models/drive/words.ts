import { firstBytesOf } from '../text.ts';

/** How many different words of one text are kept. */
const maxWords = 2_000;
const maxWordBytes = 64;
const maxWordsAskedFor = 10;

/** Scripts that are written without spaces are cut into single characters, all of which a search must find. */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[[\p{L}\p{M}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]]+/gv;
const hump = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u;

/**
 * The words of a name or a text, as they are looked up: without case and accents, `camelCase` and `v2` whole and in
 * parts.
 */
export function wordsOf(text: string): Set<string> {
  const words = new Set<string>();
  for (const [whole] of text.normalize('NFC').matchAll(word)) {
    for (const part of [whole, ...whole.split(hump)]) words.add(fold(part));
    if (words.size >= maxWords) break;
  }
  words.delete('');
  return words;
}

/** The words that somebody asks for, as they typed them: `camelCase` is one word here. */
export function wordsAskedFor(query: string): string[] {
  const asked = [...query.normalize('NFC').matchAll(word)].map(([whole]) => fold(whole));
  return [...new Set(asked)].filter((each) => each !== '').slice(0, maxWordsAskedFor);
}

function fold(text: string): string {
  const folded = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  // Cut at a whole character, so that a word that is asked for is cut like the one that is there.
  return firstBytesOf(folded, maxWordBytes);
}
