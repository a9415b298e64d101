import { incompleteAtEnd } from '../../output/textPieces.ts';

/** A longer sequence is not held back until it is complete. */
const maxHeldBytes = 4_096;
/** No mode, colour or position of a terminal has a larger number. */
const maxNumber = 9_999;
/**
 * Commands that the terminal repeats as often as their number says: insert and delete characters (@, P), lines (L, M)
 * and columns (' }, ' ~), scroll (S, T, and sideways: space @, space A), tab (I, Z), erase (X), and repeat the last
 * character (b).
 */
const repeated = new Set([...'@PLMSTIZXb}~A^'].map(codeOf));

const [esc, can, sub, bel, del] = [0x1b, 0x18, 0x1a, 0x07, 0x7f];
/** U+0080 to U+009F (bytes C2 80 to C2 9F) are control characters that mean the same as ESC and a letter. */
const c1Lead = 0xc2;
const isC1 = (byte: number | undefined) => byte !== undefined && byte >= 0x80 && byte <= 0x9f;

/**
 * Passes a program's output to its terminal in whole sequences, and clamps numbers that could keep a terminal busy:
 * `ESC [ 2147483647 L` inserts lines for hours. The filter need not understand a sequence to clamp it. It relies on two
 * facts only: numbers follow `ESC [` or `ESC P`, and a terminal ignores control characters, and bytes that are no
 * characters, between any two bytes of a sequence.
 */
export class SequenceFilter {
  readonly #side: () => number;
  #held: Buffer = Buffer.alloc(0);
  /** Inside a sequence that was too long to hold. The filter drops it. */
  #isDropping = false;

  /** `side` returns the larger side of the terminal. Repeating a command more often than that changes nothing. */
  constructor(side: () => number) {
    this.#side = side;
  }

  /** The length of an incomplete sequence that is held. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Forgets an incomplete sequence. */
  reset(): void {
    this.#held = Buffer.alloc(0);
    this.#isDropping = false;
  }

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const clean = new Rewriting(bytes);
    let at = this.#isDropping ? this.#drop(bytes, clean) : 0;
    for (at = nextControl(bytes, at); at < bytes.length; at = nextControl(bytes, at)) {
      const { end, numbers, isString } = this.#sequenceAt(bytes, at);
      const isTooLong = bytes.length - at > maxHeldBytes;
      if (end === undefined && !isTooLong) {
        this.#held = Buffer.from(bytes.subarray(at));
        return clean.upTo(at);
      }
      if (numbers !== undefined) clean.replace(at, numbers.end, numbers.by);
      if (end === undefined) {
        this.#held = Buffer.alloc(0);
        // A long title or picture is passed on as it comes. Sequences with numbers are never passed on unchecked.
        this.#isDropping = isString !== true;
        return clean.upTo(isString === true ? bytes.length : at);
      }
      at = end;
    }
    const incomplete = incompleteAtEnd(bytes);
    this.#held = Buffer.from(bytes.subarray(bytes.length - incomplete));
    return clean.upTo(bytes.length - incomplete);
  }

  #drop(bytes: Buffer, clean: Rewriting): number {
    const end = endOfNumbers(bytes, 0);
    const next = isFinalByte(bytes[end]) ? end + 1 : end;
    clean.replace(0, next, []);
    this.#isDropping = end === bytes.length;
    return next;
  }

  /** The sequence that begins at an ESC, or at the first byte of a C1 control. */
  #sequenceAt(bytes: Buffer, start: number): Sequence {
    const isEscape = bytes[start] === esc;
    const at = isEscape ? skipIgnored(bytes, start + 1) : start + 1;
    if (at === bytes.length) return {};
    if (isEscape && beginsAnother(bytes, at)) return { end: at };
    const introducer = (bytes[at] as number) - (isEscape ? 0 : 0x40);
    if (isEscape && isIntermediate(introducer)) return { end: at + 1 };
    if (introducer === codeOf('[') || introducer === codeOf('P')) return this.#numbered(bytes, at + 1, introducer);
    return stringIntroducers.has(introducer) ? stringFrom(bytes, at + 1) : { end: at + 1 };
  }

  #numbered(bytes: Buffer, start: number, introducer: number): Sequence {
    const last = endOfNumbers(bytes, start);
    const final = bytes[last];
    if (final === undefined) return {};
    if (!isFinalByte(final)) return { end: last };
    const isString = introducer === codeOf('P');
    const limit = !isString && repeated.has(final) ? Math.min(maxNumber, this.#side()) : maxNumber;
    const small = clamped(bytes.subarray(start, last), limit);
    const by = small && [...small.executed, esc, introducer, ...small.parameters, final];
    const numbers = by && { end: last + 1, by };
    return { ...(isString ? stringFrom(bytes, last + 1) : { end: last + 1 }), numbers };
  }
}

interface Sequence {
  /** Undefined if the sequence is incomplete. */
  end?: number | undefined;
  /** The replacement for its beginning, if a number was too large. */
  numbers?: { end: number; by: number[] } | undefined;
  /** For an incomplete sequence: whether it is a string, whose numbers are complete. */
  isString?: boolean;
}

const stringIntroducers = new Set([...']X^_'].map(codeOf));

/** A string such as a title. Anything that could begin another sequence ends it here. */
function stringFrom(bytes: Buffer, start: number): Sequence {
  let at = start;
  while (at < bytes.length && bytes[at] !== bel && !beginsAnother(bytes, at)) at++;
  if (at >= bytes.length || (bytes[at] === c1Lead && at + 1 === bytes.length)) return { isString: true };
  return { end: bytes[at] === bel ? at + 1 : at };
}

/** Where the next sequence, or an incomplete C1 control, begins. */
function nextControl(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === esc || (bytes[at] === c1Lead && (at + 1 === bytes.length || isC1(bytes[at + 1])))) return at;
  }
  return bytes.length;
}

/**
 * The index of the final byte, or of the byte that breaks off the sequence. The length of `bytes` if neither has come
 * yet.
 */
function endOfNumbers(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && !isFinalByte(bytes[at]) && !beginsAnother(bytes, at)) at++;
  return bytes[at] === c1Lead && at + 1 === bytes.length ? bytes.length : at;
}

/**
 * The parameters with their numbers clamped, and the control characters among them. Undefined if no number is above the
 * limit.
 */
function clamped(body: Buffer, limit: number): { parameters: number[]; executed: number[] } | undefined {
  const parameters: number[] = [];
  const executed: number[] = [];
  let digits: number[] = [];
  let isAbove = false;
  const endNumber = () => {
    const isThis = Number(String.fromCharCode(...digits)) > limit;
    parameters.push(...(isThis ? [...String(limit)].map(codeOf) : digits));
    isAbove ||= isThis;
    digits = [];
  };
  for (const byte of body) {
    if (byte < 0x20) executed.push(byte);
    else if (byte >= 0x30 && byte <= 0x39) digits.push(byte);
    else if (byte < del) {
      endNumber();
      parameters.push(byte);
    }
  }
  endNumber();
  return isAbove ? { parameters, executed } : undefined;
}

/** Collects replacements in bytes. Without a replacement, the result is the same bytes. */
class Rewriting {
  readonly #bytes: Buffer;
  readonly #parts: Buffer[] = [];
  #from = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  replace(start: number, end: number, by: number[]): void {
    this.#parts.push(this.#bytes.subarray(this.#from, start), Buffer.from(by));
    this.#from = end;
  }

  upTo(end: number): Buffer {
    const rest = this.#bytes.subarray(this.#from, Math.max(this.#from, end));
    return this.#parts.length === 0 ? rest : Buffer.concat([...this.#parts, rest]);
  }
}

/** Whether a new sequence begins here, or a byte that ends any sequence. */
function beginsAnother(bytes: Buffer, at: number): boolean {
  const byte = bytes[at];
  if (byte === esc || byte === can || byte === sub) return true;
  return byte === c1Lead && (at + 1 === bytes.length || isC1(bytes[at + 1]));
}

/** Skips the bytes that a terminal ignores within a sequence. */
function skipIgnored(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && !beginsAnother(bytes, at) && !isGraphic(bytes[at])) at++;
  return at;
}

function isGraphic(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x20 && byte < del;
}

function isIntermediate(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x20 && byte <= 0x2f;
}

function isFinalByte(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x40 && byte < del;
}

function codeOf(character: string): number {
  return character.charCodeAt(0);
}
