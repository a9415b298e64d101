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
  /** The last chunk in it. */
  seq: number;
  /** In characters of its log. */
  length: number;
}

/** In characters, of all turns together: each takes a few times its length in memory. */
const maxLength = 16 * 1_024 * 1_024;

/**
 * What running turns have said, put together once: a turn of a thousand steps reads each chunk of its log once, and not
 * at each step again. A log only grows, so what is kept is always its beginning. The turn used last stays longest.
 */
export class TurnFolds {
  readonly #readAfter: ReadAfter;
  readonly #kept = new Map<string, Kept>();
  #length = 0;

  constructor(readAfter: ReadAfter) {
    this.#readAfter = readAfter;
  }

  /** All of a turn's log, and the number of its next chunk. What it says further is added to the same fold. */
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
      // Another attempt at the same turn has read it meanwhile.
      if (kept.seq !== from) continue;
      for (const chunk of said) kept.fold.add(chunk);
      this.#keep(turnId, { fold: kept.fold, seq, length: kept.length + length }, kept);
      return { fold: kept.fold, nextSeq: seq + 1 };
    }
  }

  /** Call it when the turn has ended, or is told to others as something else than its log. */
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
