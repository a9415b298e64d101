import type { Transaction } from 'sequelize';
import type { UiChunk } from './chunks.ts';
import { MessageFold } from './foldChunks.ts';

type ReadAfter = (
  turnId: string,
  afterSeq: number,
  tell: (chunk: UiChunk, length: number) => void,
  tx?: Transaction,
) => Promise<number>;

interface Kept {
  fold: MessageFold;
  /** The number of the last chunk in the fold. */
  seq: number;
  /** The length of the folded log in characters. */
  length: number;
}

/** The limit for all turns together, in characters of their logs; a fold takes a few times as much memory. */
const maxLength = 16 * 1_024 * 1_024;

/**
 * A cache of folds of running turns. Without it, a turn of a thousand steps would read its whole log again at each
 * step. A log only grows, so a cached fold is always its beginning. The least recently used turns are dropped first.
 */
export class TurnFolds {
  readonly #readAfter: ReadAfter;
  readonly #kept = new Map<string, Kept>();
  #length = 0;

  constructor(readAfter: ReadAfter) {
    this.#readAfter = readAfter;
  }

  /** The fold of a turn's whole log, and the number of its next chunk. Later chunks are added to the same fold. */
  async of(turnId: string, tx?: Transaction): Promise<{ fold: MessageFold; nextSeq: number }> {
    for (;;) {
      const kept = this.#kept.get(turnId) ?? { fold: new MessageFold(), seq: 0, length: 0 };
      const from = kept.seq;
      const said: UiChunk[] = [];
      let length = 0;
      const tell = (chunk: UiChunk, characters: number) => {
        said.push(chunk);
        length += characters;
      };
      const seq = await this.#readAfter(turnId, from, tell, tx);
      // Another attempt at the same turn has added to the fold meanwhile: read again from its new end.
      if (kept.seq !== from) continue;
      for (const chunk of said) kept.fold.add(chunk);
      this.#keep(turnId, { fold: kept.fold, seq, length: kept.length + length }, kept);
      return { fold: kept.fold, nextSeq: seq + 1 };
    }
  }

  /** Call this when the turn has ended, or when the fold may hold chunks that are not in the log. */
  forget(turnId: string): void {
    this.#length -= this.#kept.get(turnId)?.length ?? 0;
    this.#kept.delete(turnId);
  }

  #keep(turnId: string, now: Kept, former: Kept): void {
    this.forget(turnId);
    Object.assign(former, now);
    this.#kept.set(turnId, former);
    this.#length += former.length;
    for (const [oldest] of this.#kept) {
      if (this.#length <= maxLength) return;
      this.forget(oldest);
    }
  }
}
