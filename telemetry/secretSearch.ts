import type { SecretAutomaton } from './secretAutomaton.ts';
import { pieceLength } from './secretForms.ts';

/** Where secrets are in a text that comes in pieces. The text is its reader's, who keeps what is still needed of it. */
export class SecretSearch {
  readonly #automaton: SecretAutomaton;
  #state = 0;
  /** Where texts may have begun that are too long for the automaton, in order. */
  #begun: number[] = [];

  constructor(automaton: SecretAutomaton) {
    this.#automaton = automaton;
  }

  /** Reads on, from `begin` to the end of the text: what is before it was read already. */
  read(text: string, begin: number, found: (from: number, to: number) => void): void {
    for (let index = begin; index < text.length; index++) {
      // At its beginning the automaton remembers nothing: what cannot begin a secret need not be read by it.
      if (this.#state === 0 && this.#begun.length === 0) index = this.#automaton.skip(text, index);
      if (index < text.length) this.#step(text, index, found);
    }
  }

  /** From where on the text, of this length, may be the beginning of a secret. */
  openFrom(length: number): number {
    return Math.min(length - this.#automaton.depthOf(this.#state), this.#begun[0] ?? length);
  }

  /** The text has lost its first characters. */
  forget(count: number): void {
    this.#begun = this.#begun.map((from) => from - count);
  }

  /** What comes does not belong to what was read. */
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

/** Adds a span to others, which are in order and apart from each other: those that overlap or touch become one. */
export function addSpan(spans: Span[], begin: number, end: number): void {
  let [from, to] = [begin, end];
  for (let last = spans.at(-1); last !== undefined && last.to >= from; last = spans.at(-1)) {
    from = Math.min(from, last.from);
    to = Math.max(to, last.to);
    spans.pop();
  }
  spans.push({ from, to });
}
