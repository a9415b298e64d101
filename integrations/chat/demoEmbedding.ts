import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Embedded } from './embeddings.ts';
import { ProviderError } from './errors.ts';
import { estimateTokens } from './tokens.ts';

const usualDimensions = 256;
const mostDimensions = 1_024;
/** How many words are counted before other requests get their turn. */
const wordsAtOnce = 20_000;

/**
 * The vectors of the demo: deterministic, and of length 1. Each word, or token id, counts in one dimension, so texts
 * that share words are near each other. Throws {@link ProviderError} for more dimensions than it has.
 */
export async function embedByDemo(
  inputs: readonly (string | number[])[],
  dimensions: number | undefined,
): Promise<Embedded> {
  const size = dimensions ?? usualDimensions;
  if (size > mostDimensions) throw new ProviderError('PROVIDER_REFUSED');
  const vectors: number[][] = [];
  let inputTokens = 0;
  let words = 0;
  for (const one of inputs) {
    inputTokens += typeof one === 'string' ? estimateTokens(one.length) : one.length;
    const vector = Array<number>(size).fill(0);
    for (const word of wordsOf(one)) {
      const at = hashOf(word) % size;
      vector[at] = (vector[at] ?? 0) + 1;
      if (++words % wordsAtOnce > 0) continue;
      await nextTurnOfEventLoop();
    }
    const length = Math.hypot(...vector);
    vectors.push(vector.map((value) => value / length));
  }
  return { vectors, inputTokens };
}

/** A text without any word counts as one. */
function* wordsOf(input: string | number[]): Iterable<string> {
  if (typeof input !== 'string') return yield* input.map(String);
  let hasWord = false;
  for (const [word] of input.matchAll(/[\p{L}\p{N}]+/gu)) {
    hasWord = true;
    yield word.toLowerCase();
  }
  if (!hasWord) yield input;
}

/** FNV-1a: fast, and the same everywhere. */
function hashOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < word.length; index++) {
    hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash;
}
