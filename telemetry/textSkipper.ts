/** How many characters are looked at together: enough that a block of ordinary text is seldom one of a secret. */
const blockLength = 3;
/** A larger window would only enlarge the table: most text is skipped in steps of the window less one block. */
const maxWindow = 8;

/**
 * Skips text in which none of many texts can begin (Wu and Manber, 1994). For each block of characters, a table has the
 * least distance to the end of a text's beginning. So only every few characters of a long text are looked at, and only
 * the rest goes through the automaton.
 */
export class TextSkipper {
  /** How many first characters of each text count: at most as many as the shortest text has. */
  readonly #window: number;
  /** How many characters may be skipped when a block with this hash ends the window. */
  readonly #shift: Uint8Array;
  readonly #mask: number;

  /** For `count` texts, the shortest of which has this length. Each of them must be added. */
  constructor(count: number, shortest: number) {
    this.#window = Math.min(shortest, maxWindow);
    const blocks = this.#window - blockLength + 1;
    // Too short for any block: nothing is skipped.
    const slots = blocks < 1 ? 1 : tableSize(count * blocks);
    this.#mask = slots - 1;
    this.#shift = new Uint8Array(slots).fill(Math.max(0, blocks));
  }

  add(text: string): void {
    for (let end = blockLength; end <= this.#window; end++) {
      const slot = this.#slotOf(text, end - 1);
      this.#shift[slot] = Math.min(this.#shift[slot] ?? 0, this.#window - end);
    }
  }

  /**
   * The first position at or after `from` where one of the texts may begin. The last few characters of the text always
   * count.
   */
  skip(text: string, from: number): number {
    if (this.#window < blockLength) return from;
    let last = from + this.#window - 1;
    while (last < text.length) {
      const shift = this.#shift[this.#slotOf(text, last)] ?? 0;
      if (shift === 0) break;
      last += shift;
    }
    return Math.min(last - this.#window + 1, text.length);
  }

  #slotOf(text: string, last: number): number {
    const mixed =
      Math.imul(text.charCodeAt(last), 0x9e3779b1) ^
      Math.imul(text.charCodeAt(last - 1), 0x85ebca6b) ^
      Math.imul(text.charCodeAt(last - 2), 0xc2b2ae35);
    return (mixed ^ (mixed >>> 15)) & this.#mask;
  }
}

/** Sparse, so that few blocks of other texts share a slot. */
function tableSize(blocks: number): number {
  return 2 ** Math.min(20, Math.max(12, Math.ceil(Math.log2(blocks * 16))));
}
