import { atOnce } from './slices.ts';

/** Shorter values are too common in plain text: replacing them would garble what people write. */
const minLength = 6;
/** Minimum length of a single line of a longer value, for the same reason. */
const minLineLength = 16;
/** How many lines of a value are also looked for encoded. A private key has fewer. */
const mostEncodedLines = 100;
/** Widths at which programs break lines: `base64` and MIME, PEM and `openssl`, `xxd -p`, and `fold` in common use. */
const base64Widths = [64, 76];
const hexWidths = [60];
const plainWidths = [40, 60, 64, 72, 76, 80];
/** Longer texts are not looked for at each of the plain widths. */
const mostFolded = 1_000;
/** A text with fewer different characters is a ruler or an indentation. */
const minDistinct = 6;
/** Longer texts are looked for in pieces of this length, so that a part of a long secret is found too. */
export const pieceLength = 64;

/**
 * The texts to look for to find a secret: the value in its likely spellings (as it is, and as JSON, URLs, base64 and
 * hexadecimal write it), also broken into lines as programs do, and the same for each of its own lines. None is longer
 * than `pieceLength`.
 */
export function secretForms(value: string): string[] {
  return [...atOnce(formsOf(value, { left: Number.POSITIVE_INFINITY }))];
}

/**
 * The forms of several secrets: the plain text of each value, and at most `most` others. A secret has one or more
 * values. Small secrets come first, so a large secret never takes their room. Yields the number of characters that it
 * has worked on.
 */
export function* formsWithin(secrets: readonly (readonly string[])[], most: number): Generator<number, string[]> {
  const lengthOf = (values: readonly string[]) => values.reduce((sum, value) => sum + value.length, 0);
  const smallestFirst = secrets
    .map((values) => ({ values, length: lengthOf(values) }))
    .toSorted((a, b) => a.length - b.length);
  const forms = new Set<string>();
  const room = { left: most };
  for (const value of smallestFirst.flatMap(({ values }) => values)) {
    for (const form of yield* formsOf(value, room)) forms.add(form);
  }
  return [...forms];
}

/** The forms of one value: all of its plain text, and other spellings while `room` lasts. Those use the room up. */
export function* formsOf(value: string, room: { left: number }): Generator<number, Set<string>> {
  const text = value.trim();
  if (text.length < minLength) return new Set();
  const forms = new Set(piecesOf(text));
  yield text.length;
  if (room.left === 0) return forms;
  const spelled = new Set([text]);
  for (const spelling of spellingsOf(text)) {
    if (spelled.has(spelling)) continue;
    spelled.add(spelling);
    for (const piece of piecesOf(spelling)) {
      if (room.left === 0) return forms;
      // A piece that is there already counts too: this limits the work, not only the result.
      room.left--;
      forms.add(piece);
      yield piece.length;
    }
  }
  return forms;
}

/** The likeliest spellings first. Each is made only when it is asked for. */
function* spellingsOf(text: string): Generator<string> {
  const lines = linesOf(text);
  for (const each of [text, ...lines]) yield* plainSpellings(each);
  yield* encodings(text);
  yield* inLines(text);
  for (const line of lines.slice(0, mostEncodedLines)) yield* encodings(line);
}

/** Replaces a secret in output. */
export const redacted = '[redacted]';

/** A text in pieces. The last piece may overlap the one before it. */
export function piecesOf(text: string): string[] {
  if (text.length <= pieceLength) return [text];
  const pieces: string[] = [];
  for (let at = 0; at + pieceLength < text.length; at += pieceLength) pieces.push(text.slice(at, at + pieceLength));
  pieces.push(text.slice(-pieceLength));
  const telling = pieces.filter(isTelling);
  return telling.length === 0 ? pieces : telling;
}

function* plainSpellings(text: string): Generator<string> {
  yield text;
  const inJson = JSON.stringify(text).slice(1, -1);
  yield inJson;
  // JSON is often text within other JSON: a tool's arguments, a log line.
  yield JSON.stringify(inJson).slice(1, -1);
  yield inJson.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function* encodings(text: string): Generator<string> {
  const bytes = Buffer.from(text, 'utf8');
  yield* base64Forms(bytes);
  const hex = bytes.toString('hex');
  yield hex;
  yield hex.toUpperCase();
  if (text.isWellFormed()) yield* urlForms(text);
}

/**
 * The whole value, with padding and without, and the value as a part of something longer (`user:secret`). There it has
 * one of three alignments. The characters that it shares with its neighbours are left out.
 */
function* base64Forms(bytes: Buffer): Generator<string> {
  const whole = bytes.toString('base64');
  yield* inBothAlphabets(whole);
  yield* inBothAlphabets(whole.replace(/=+$/, ''));
  for (const before of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
    const within = shifted.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((shifted.length * 8) / 6));
    yield* inBothAlphabets(within);
  }
}

function* inBothAlphabets(base64: string): Generator<string> {
  yield base64;
  yield base64.replaceAll('+', '-').replaceAll('/', '_');
}

/** As programs write the value that break long lines. A terminal has `\r\n` for each `\n`. */
function* inLines(text: string): Generator<string> {
  const bytes = Buffer.from(text, 'utf8');
  // Without the last characters, which depend on a newline that may follow.
  const base64 = bytes.toString('base64').slice(0, Math.floor((bytes.length * 8) / 6));
  for (const each of inBothAlphabets(base64)) yield* broken(each, base64Widths);
  const hex = bytes.toString('hex');
  for (const each of [hex, hex.toUpperCase()]) yield* broken(each, hexWidths);
  if (text.length <= mostFolded && !/[\r\n]/.test(text)) yield* broken(text, plainWidths);
}

function* broken(text: string, widths: readonly number[]): Generator<string> {
  for (const width of widths) {
    if (text.length <= width) continue;
    const lines = Array.from({ length: Math.ceil(text.length / width) }, (_, at) =>
      text.slice(at * width, (at + 1) * width),
    );
    yield lines.join('\n');
    yield lines.join('\r\n');
  }
}

/** Programs differ in what they leave unescaped, in how they write a space, and in the case of the hex digits. */
function* urlForms(text: string): Generator<string> {
  const lenient = encodeURIComponent(text);
  yield* inBothCases(lenient);
  const strict = lenient.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  yield* inBothCases(strict);
  yield* inBothCases(strict.replaceAll('~', '%7E'));
  yield* inBothCases(new URLSearchParams([['', text]]).toString().slice(1));
  yield* inBothCases(encodeURI(text));
}

function* inBothCases(percent: string): Generator<string> {
  yield percent;
  yield percent.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase());
}

/** Distinctive lines: not short ones, and not the frame of a PEM block, which every key has. */
function linesOf(text: string): string[] {
  if (!/[\r\n]/.test(text)) return [];
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.filter((line) => line.length >= minLineLength && isTelling(line) && !/^-----.*-----$/.test(line));
}

function isTelling(text: string): boolean {
  const seen = new Set<string>();
  for (const character of text) {
    if (seen.add(character).size >= minDistinct) return true;
  }
  return false;
}
