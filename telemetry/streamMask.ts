import { SecretAutomaton } from './secretAutomaton.ts';
import { pieceLength, piecesOf } from './secretForms.ts';
import { addSpan, SecretSearch, type Span } from './secretSearch.ts';

/** The forms to look for in bytes. */
export interface ByteForms {
  automaton: SecretAutomaton;
  /** In Latin-1, one character for each byte. None is longer than `pieceLength`. */
  forms: readonly string[];
}

/** A secret's beginning or end of at most this length is shown while it is unknown what it belongs to. */
const tolerated = 2;
const asterisk = 0x2a;
/** The most of a secret that can be before or after a cut. */
const mostCut = pieceLength - 1;
const nothing = Buffer.alloc(0);

/** The same forms in UTF-8, which is how programs print them. */
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
 * Writes asterisks over the secrets in one stream of bytes, one for each byte, so that positions in the stream stay
 * valid. Bytes that may be the beginning of a secret are held back until that is known. When waiting is impossible
 * (`pause`), or the bytes before or after are unknown (`cut`, `beginsCut`), bytes that may be part of a secret are
 * masked too.
 */
export class StreamMask {
  #known: ByteForms;
  #search: SecretSearch;
  /** The last bytes given out, in which a secret may have begun, and the bytes held back. */
  #text = '';
  #given = 0;
  #found: Span[] = [];
  /** Whether the text may begin in the middle of a secret. */
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

  /** Sets the secrets to look for from now on. */
  use(known: ByteForms): void {
    this.#known = known;
    this.#search = new SecretSearch(known.automaton);
    this.#read(0);
  }

  /** Reads earlier bytes, which were given out already. */
  recall(bytes: Uint8Array): void {
    this.#add(bytes);
    this.#settleBeginning();
    this.#give(this.#text.length);
  }

  /** Takes bytes, and returns what may be given out of these and of the held ones. */
  push(bytes: Uint8Array): Buffer {
    this.#add(bytes);
    this.#settleBeginning();
    return this.#give(this.#beginsCut ? this.#given : this.#search.openFrom(this.#text.length));
  }

  /** Gives out all held bytes, since nothing may follow for long. */
  pause(): Buffer {
    if (this.held === 0) return nothing;
    return this.#giveAll(tolerated);
  }

  /** Gives out all held bytes, since what follows is unknown. */
  cut(): Buffer {
    const all = this.#giveAll(0);
    this.#restart(true);
    return all;
  }

  /** Gives out all held bytes. The stream has ended, so no secret continues. */
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

  /** Once enough bytes have come, decides how much of a secret the text begins with. */
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

  /** Gives out the bytes before `end`, and forgets those in which no secret can have begun. */
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
 * The length of the longest beginning of this text that is the end of a form, or of the whole text if the form contains
 * it. Reads each character of a form once (Knuth, Morris and Pratt, 1977), since a space may have very many forms.
 */
function endFinder(text: string): (form: string) => number {
  /** For each beginning of the text: the length of the longest shorter beginning that it ends with. */
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
