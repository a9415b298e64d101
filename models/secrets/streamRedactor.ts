import { redacted } from '../../telemetry/secretForms.ts';

/** A text to look for, with its Knuth–Morris–Pratt table: how much of its beginning each of its beginnings ends with. */
export interface Pattern {
  text: string;
  failure: Int32Array;
}

export function compilePattern(text: string): Pattern {
  const failure = new Int32Array(text.length);
  for (let index = 1, length = 0; index < text.length; ) {
    if (text[index] === text[length]) failure[index++] = ++length;
    else if (length > 0) length = failure[length - 1] ?? 0;
    else index++;
  }
  return { text, failure };
}

/**
 * Replaces secrets in a text that comes in pieces, wherever the pieces are cut. It holds back no more than what may be the beginning of a
 * secret, so ordinary text passes at once.
 */
export class StreamRedactor {
  readonly #byFirst: ReadonlyMap<string, readonly Pattern[]>;
  /** How much of each pattern the text so far ends with. */
  #active = new Map<Pattern, number>();
  #held = '';
  /** Parts of what is held that are secrets, in order and apart from each other. */
  #found: { from: number; to: number }[] = [];

  constructor(byFirst: ReadonlyMap<string, readonly Pattern[]>) {
    this.#byFirst = byFirst;
  }

  push(text: string): string {
    const begin = this.#held.length;
    this.#held += text;
    for (let index = begin; index < this.#held.length; index++) this.#step(this.#held[index] ?? '', index);
    let safe = this.#held.length - Math.max(0, ...this.#active.values());
    for (const { from, to } of this.#found) if (from < safe && safe < to) safe = from;
    return this.#release(safe);
  }

  /** What is held back, at the text's end. */
  rest(): string {
    this.#active.clear();
    return this.#release(this.#held.length);
  }

  #step(character: string, index: number): void {
    const next = new Map<Pattern, number>();
    const advance = (pattern: Pattern, before: number) => {
      let length = before;
      while (length > 0 && pattern.text[length] !== character) length = pattern.failure[length - 1] ?? 0;
      if (pattern.text[length] === character) length++;
      if (length === pattern.text.length) {
        this.#mark(index + 1 - length, index + 1);
        length = pattern.failure[length - 1] ?? 0;
      }
      if (length > 0) next.set(pattern, length);
    };
    for (const [pattern, length] of this.#active) advance(pattern, length);
    for (const pattern of this.#byFirst.get(character) ?? []) if (!this.#active.has(pattern)) advance(pattern, 0);
    this.#active = next;
  }

  #mark(from: number, to: number): void {
    let begin = from;
    for (let last = this.#found.at(-1); last !== undefined && last.to > begin; last = this.#found.at(-1)) {
      begin = Math.min(begin, last.from);
      this.#found.pop();
    }
    this.#found.push({ from: begin, to });
  }

  #release(end: number): string {
    let out = '';
    let position = 0;
    for (const { from, to } of this.#found) {
      if (to > end) break;
      out += this.#held.slice(position, from) + redacted;
      position = to;
    }
    out += this.#held.slice(position, end);
    this.#held = this.#held.slice(end);
    this.#found = this.#found.filter(({ to }) => to > end).map(({ from, to }) => ({ from: from - end, to: to - end }));
    return out;
  }
}
