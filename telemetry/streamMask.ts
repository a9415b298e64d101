import { SecretAutomaton } from './secretAutomaton.ts';
import { pieceLength, piecesOf } from './secretForms.ts';
import { addSpan, SecretSearch, type Span } from './secretSearch.ts';

/** What is looked for in bytes. */
export interface ByteForms {
  automaton: SecretAutomaton;
  /** In Latin-1: a character for each byte, none longer than `pieceLength`. */
  forms: readonly string[];
}

/** A beginning or an end of a secret that is no longer than this is shown where nobody knows yet what it belongs to. */
const tolerated = 2;
const asterisk = 0x2a;
/** What of a secret there can be before or after a cut. */
const mostCut = pieceLength - 1;
const nothing = Buffer.alloc(0);

/** The same forms as UTF-8 writes them, which is how a program does. */
export function* byteForms(texts: readonly string[], automaton: SecretAutomaton): Generator<number, ByteForms> {
  const forms = new Set<string>();
  let areSame = true;
  for (const text of texts) {
    const bytes = Buffer.from(text, 'utf8').toString('latin1');
    if (bytes.length !== text.length) areSame = false;
    for (const piece of piecesOf(bytes)) forms.add(piece);
    yield bytes.length;
  }
  return { forms: [...forms], automaton: areSame ? automaton : yield* SecretAutomaton.building(forms) };
}

/**
 * Writes asterisks over the secrets in one stream of bytes, as many as there are bytes: positions in the stream stay
 * true. What may be the beginning of a secret is held back until it is known. Where that cannot be waited for (`pause`),
 * or what was before or comes after is not known (`cut`, `beginsCut`), what may be a part of a secret is masked too.
 */
export class StreamMask {
  #known: ByteForms;
  #search: SecretSearch;
  /** The last of what was given, in which a secret may have begun, and what is held. */
  #text = '';
  #given = 0;
  #found: Span[] = [];
  /** Whether the text may begin within a secret. */
  #beginsCut: boolean;

  constructor(known: ByteForms, { beginsCut = false }: { beginsCut?: boolean } = {}) {
    this.#known = known;
    this.#search = new SecretSearch(known.automaton);
    this.#beginsCut = beginsCut;
  }

  /** How many bytes are held back. */
  get held(): number {
    return this.#text.length - this.#given;
  }

  /** There are other secrets from now on. */
  use(known: ByteForms): void {
    this.#known = known;
    this.#search = new SecretSearch(known.automaton);
    this.#read(0);
  }

  /** What was before, and was given already. */
  recall(bytes: Uint8Array): void {
    this.#add(bytes);
    this.#settleBeginning();
    this.#give(this.#text.length);
  }

  /** What of these bytes, and of those held before, may be given now. */
  push(bytes: Uint8Array): Buffer {
    this.#add(bytes);
    this.#settleBeginning();
    return this.#give(this.#beginsCut ? this.#given : this.#search.openFrom(this.#text.length));
  }

  /** All of what is held, since nothing may follow for long. */
  pause(): Buffer {
    if (this.held === 0) return nothing;
    return this.#giveAll(tolerated);
  }

  /** All of what is held, since what follows is not known. */
  cut(): Buffer {
    const all = this.#giveAll(0);
    this.#restart(true);
    return all;
  }

  /** All of what is held: the stream has ended, and no other half of it will come. */
  end(): Buffer {
    this.#hideBeginning();
    const all = this.#give(this.#text.length);
    this.#restart(false);
    return all;
  }

  #add(bytes: Uint8Array): void {
    const begin = this.#text.length;
    this.#text += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    this.#read(begin);
  }

  #read(begin: number): void {
    this.#search.read(this.#text, begin, (from, to) => addSpan(this.#found, from, to));
  }

  #restart(beginsCut: boolean): void {
    this.#search.reset();
    this.#text = '';
    this.#given = 0;
    this.#found = [];
    this.#beginsCut = beginsCut;
  }

  #giveAll(shown: number): Buffer {
    this.#hideBeginning();
    const end = this.#text.length;
    const open = this.#search.openFrom(end);
    if (end - open > shown) this.#hide(open, end);
    return this.#give(end);
  }

  /** Enough has come to say how much of a secret the text begins with. */
  #settleBeginning(): void {
    if (!this.#beginsCut || this.#text.length < mostCut) return;
    this.#hideBeginning();
    this.#beginsCut = false;
  }

  #hideBeginning(): void {
    if (!this.#beginsCut) return;
    const begun = this.#text.slice(0, mostCut);
    const endIn = endFinder(begun);
    let length = 0;
    for (const form of this.#known.forms) length = Math.max(length, endIn(form));
    if (length > tolerated) this.#hide(0, length);
  }

  #hide(from: number, to: number): void {
    this.#found.push({ from, to });
    const spans = this.#found.toSorted((a, b) => a.from - b.from);
    this.#found = [];
    for (const span of spans) addSpan(this.#found, span.from, span.to);
  }

  /** Gives what comes before `end`, and forgets what no secret can have begun in. */
  #give(end: number): Buffer {
    const from = this.#given;
    const out = end <= from ? nothing : Buffer.from(this.#text.slice(from, end), 'latin1');
    const within = (at: number) => Math.min(Math.max(0, at - from), out.length);
    for (const span of this.#found) out.fill(asterisk, within(span.from), within(span.to));
    this.#given = Math.max(from, end);
    const old = this.#beginsCut ? 0 : this.#given - pieceLength;
    if (old > 0) this.#forget(old);
    return out;
  }

  #forget(count: number): void {
    this.#text = this.#text.slice(count);
    this.#given -= count;
    const left = this.#found.filter(({ to }) => to > count);
    this.#found = left.map(({ from, to }) => ({ from: Math.max(0, from - count), to: to - count }));
    this.#search.forget(count);
  }
}

/**
 * How much of this text is the end of a form, or whether all of it is a part of the form. Each character of a form is
 * read once (Knuth, Morris and Pratt, 1977), since a space may have very many forms.
 */
function endFinder(text: string): (form: string) => number {
  /** For each beginning of the text: how long the longest shorter beginning is that it ends with. */
  const borders = [0];
  const after = (length: number, unit: number) => {
    let matched = length;
    while (matched > 0 && text.charCodeAt(matched) !== unit) matched = borders[matched - 1] ?? 0;
    return text.charCodeAt(matched) === unit ? matched + 1 : 0;
  };
  for (let at = 1; at < text.length; at++) borders.push(after(borders[at - 1] ?? 0, text.charCodeAt(at)));
  return (form) => {
    let matched = 0;
    for (let at = 0; at < form.length && matched < text.length; at++) matched = after(matched, form.charCodeAt(at));
    return matched;
  };
}
