import type { SecretAutomaton } from './secretAutomaton.ts';
import { redacted } from './secretForms.ts';
import { addSpan, SecretSearch, type Span } from './secretSearch.ts';

/**
 * Replaces secrets in a text that arrives in pieces, wherever the pieces are cut. It holds back only what may be the
 * beginning of a secret, so ordinary text passes at once. Secrets that overlap or touch are replaced as one.
 */
export class StreamRedactor {
  readonly #search: SecretSearch;
  #held = '';
  /** The secrets in the held text, in order and separate. */
  #found: Span[] = [];
  #endsRedacted = false;

  constructor(automaton: SecretAutomaton) {
    this.#search = new SecretSearch(automaton);
  }

  push(text: string): string {
    const begin = this.#held.length;
    this.#held += text;
    this.#search.read(this.#held, begin, (from, to) => addSpan(this.#found, from, to));
    let safe = this.#search.openFrom(this.#held.length);
    const last = this.#found.findLast(({ from }) => from < safe);
    if (last !== undefined && last.to > safe) safe = last.from;
    return this.#release(safe);
  }

  /** Returns the held text at the end. */
  rest(): string {
    this.#search.reset();
    return this.#release(this.#held.length);
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
      // Secrets that directly follow each other get one replacement.
      if (!this.#endsRedacted) out += redacted;
      this.#endsRedacted = true;
      position = to;
      released++;
    }
    append(this.#held.slice(position, end));
    if (end === 0) return out;
    this.#held = this.#held.slice(end);
    this.#found = this.#found.slice(released).map(({ from, to }) => ({ from: from - end, to: to - end }));
    this.#search.forget(end);
    return out;
  }
}

/** The same for a whole text. */
export function redactText(automaton: SecretAutomaton, text: string): string {
  if (automaton.isEmpty) return text;
  const stream = new StreamRedactor(automaton);
  return stream.push(text) + stream.rest();
}
