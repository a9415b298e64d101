import type { SecretAutomaton } from './secretAutomaton.ts';
import { pieceLength } from './secretForms.ts';

/** Finds secrets in a text that arrives in pieces. The reader keeps the text, as much as is still needed of it. */
export class SecretSearch {
  readonly #automaton: SecretAutomaton;
  #state = 0;
  /** Where texts that are too long for the automaton may have begun, in order. */
  #begun: number[] = [];

  constructor(automaton: SecretAutomaton) {
    this.#automaton = automaton;
  }

  /** Reads the text from `begin` to its end. The text before `begin` was read already. */
  read(text: string, begin: number, found: (from: number, to: number) => void): void {
    for (let index = begin; index < text.length; index++) {
      // In its initial state the automaton remembers nothing, so characters that cannot begin a secret are skipped.
      if (this.#state === 0 && this.#begun.length === 0) index = this.#automaton.skip(text, index);
      if (index < text.length) this.#step(text, index, found);
    }
  }

  /** The position in a text of this length from which on it may be the beginning of a secret. */
  openFrom(length: number): number {
    return Math.min(length - this.#automaton.depthOf(this.#state), this.#begun[0] ?? length);
  }

  /** Tells the search that the text has lost its first characters. */
  forget(count: number): void {
    this.#begun = this.#begun.map((from) => from - count);
  }

  /** Tells the search that the next text does not continue the one read so far. */
  reset(): void {
    this.#state = 0;
    this.#begun = [];
  }

  #step(text: string, index: number, found: (from: number, to: number) => void): void {
    const automaton = this.#automaton;
    this.#state = automaton.next(this.#state, text.charCodeAt(index));
    const length = automaton.foundAt(this.#state);
    if (length > 0) found(index + 1 - length, index + 1);
    const anchor = automaton.anchorAt(this.#state);
    if (anchor > 0) this.#begun.push(index + 1 - anchor);
    const [first] = this.#begun;
    if (first === undefined || first + pieceLength > index + 1) return;
    this.#begun.shift();
    if (automaton.isPiece(text.slice(first, index + 1))) found(first, index + 1);
  }
}

export interface Span {
  from: number;
  to: number;
}

/** Adds a span to others, which are in order and separate. Spans that overlap or touch become one. */
export function addSpan(spans: Span[], begin: number, end: number): void {
  let [from, to] = [begin, end];
  for (let last = spans.at(-1); last !== undefined && last.to >= from; last = spans.at(-1)) {
    from = Math.min(from, last.from);
    to = Math.max(to, last.to);
    spans.pop();
  }
  spans.push({ from, to });
}
