import type { SecretAutomaton } from './secretAutomaton.ts';
import { pieceLength, redacted } from './secretForms.ts';

/**
 * Replaces secrets in a text that comes in pieces, wherever the pieces are cut. It holds back no more than what may be
 * the beginning of a secret, so ordinary text passes at once. Secrets that overlap or touch are one.
 */
export class StreamRedactor {
  readonly #automaton: SecretAutomaton;
  #state = 0;
  #held = '';
  /** Parts of what is held that are secrets, in order and apart from each other. */
  #found: { from: number; to: number }[] = [];
  /** Where in what is held texts may have begun that are too long for the automaton, in order. */
  #begun: number[] = [];
  #endsRedacted = false;

  constructor(automaton: SecretAutomaton) {
    this.#automaton = automaton;
  }

  push(text: string): string {
    const begin = this.#held.length;
    this.#held += text;
    for (let index = begin; index < this.#held.length; index++) {
      // At its beginning the automaton remembers nothing: what cannot begin a secret need not be read by it.
      if (this.#state === 0 && this.#begun.length === 0) index = this.#automaton.skip(this.#held, index);
      if (index < this.#held.length) this.#step(this.#held.charCodeAt(index), index);
    }
    let safe = Math.min(this.#held.length - this.#automaton.depthOf(this.#state), this.#begun[0] ?? this.#held.length);
    const last = this.#found.findLast(({ from }) => from < safe);
    if (last !== undefined && last.to > safe) safe = last.from;
    return this.#release(safe);
  }

  /** What is held back, at the text's end. */
  rest(): string {
    this.#state = 0;
    this.#begun = [];
    return this.#release(this.#held.length);
  }

  #step(unit: number, index: number): void {
    const automaton = this.#automaton;
    this.#state = automaton.next(this.#state, unit);
    const length = automaton.foundAt(this.#state);
    if (length > 0) this.#mark(index + 1 - length, index + 1);
    const anchor = automaton.anchorAt(this.#state);
    if (anchor > 0) this.#begun.push(index + 1 - anchor);
    const [first] = this.#begun;
    if (first === undefined || first + pieceLength > index + 1) return;
    this.#begun.shift();
    if (automaton.isPiece(this.#held.slice(first, index + 1))) this.#mark(first, index + 1);
  }

  #mark(begin: number, end: number): void {
    let [from, to] = [begin, end];
    for (let last = this.#found.at(-1); last !== undefined && last.to >= from; last = this.#found.at(-1)) {
      from = Math.min(from, last.from);
      to = Math.max(to, last.to);
      this.#found.pop();
    }
    this.#found.push({ from, to });
  }

  #release(end: number): string {
    let out = '';
    let position = 0;
    const append = (text: string) => {
      if (text === '') return;
      out += text;
      this.#endsRedacted = false;
    };
    let released = 0;
    for (const { from, to } of this.#found) {
      if (to > end) break;
      append(this.#held.slice(position, from));
      // What follows a secret at once is a part of it.
      if (!this.#endsRedacted) out += redacted;
      this.#endsRedacted = true;
      position = to;
      released++;
    }
    append(this.#held.slice(position, end));
    if (end === 0) return out;
    this.#held = this.#held.slice(end);
    this.#found = this.#found.slice(released).map(({ from, to }) => ({ from: from - end, to: to - end }));
    this.#begun = this.#begun.map((from) => from - end);
    return out;
  }
}

/** The same for a text that is there as a whole. */
export function redactText(automaton: SecretAutomaton, text: string): string {
  if (automaton.isEmpty) return text;
  const stream = new StreamRedactor(automaton);
  return stream.push(text) + stream.rest();
}
