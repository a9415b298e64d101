/** Shorter values are too common as plain text: replacing them would garble what people write. */
const minLength = 6;
/** Of a single line of a longer value, for the same reason. */
const minLineLength = 16;
/** Of a value of many lines, so many are looked for encoded, too: a private key has fewer. */
const mostEncodedLines = 100;
/** Where programs break lines: `base64` and MIME, PEM and `openssl`, `xxd -p`, and `fold` as people use it. */
const base64Widths = [64, 76];
const hexWidths = [60];
const plainWidths = [40, 60, 64, 72, 76, 80];
/** Longer texts are not looked for at each of these widths. */
const mostFolded = 1_000;
/** Fewer different characters make a ruler, or an indentation. */
const minDistinct = 6;
/** Longer texts are looked for in pieces of this length, so each piece of a long secret is one too. */
export const pieceLength = 64;

/**
 * What to look for so that a secret is found: the value in the spellings in which it would turn up, as it is and as
 * JSON, URLs, base64 and hexadecimal write it, also in lines as programs break them, and the same of each of its own
 * lines. None is longer than `pieceLength`.
 */
export function secretForms(value: string): string[] {
  const text = value.trim();
  if (text.length < minLength) return [];
  const lines = linesOf(text);
  const forms = [text, ...lines].flatMap(plainSpellings);
  const encoded = [text, ...lines.slice(0, mostEncodedLines)].flatMap(encodings);
  return [...new Set([...forms, ...encoded, ...inLines(text)].flatMap(piecesOf))];
}

/** The replacement of a secret. */
export const redacted = '[redacted]';

/** A text in pieces that may overlap at its end. */
export function piecesOf(text: string): string[] {
  if (text.length <= pieceLength) return [text];
  const pieces: string[] = [];
  for (let at = 0; at + pieceLength < text.length; at += pieceLength) pieces.push(text.slice(at, at + pieceLength));
  pieces.push(text.slice(-pieceLength));
  const telling = pieces.filter(isTelling);
  return telling.length === 0 ? pieces : telling;
}

function plainSpellings(text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1);
  // JSON is often a text in other JSON: a tool's arguments, a log line.
  const inJsonInJson = JSON.stringify(inJson).slice(1, -1);
  const inAscii = inJson.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return [text, inJson, inJsonInJson, inAscii];
}

function encodings(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const hex = bytes.toString('hex');
  return [...base64Forms(bytes), hex, hex.toUpperCase(), ...(text.isWellFormed() ? urlForms(text) : [])];
}

/**
 * As a whole, with its padding and without, and as a part of something longer (`user:secret`): wherever it begins
 * there, one of three alignments has it, but for the characters that its neighbours share in.
 */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString('base64');
  const within = [0, 1, 2].map((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
    return shifted.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((shifted.length * 8) / 6));
  });
  const forms = [whole, whole.replace(/=+$/, ''), ...within];
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
}

/** As programs write it that break long lines. A terminal has `\r\n` for each `\n`. */
function inLines(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const hex = bytes.toString('hex');
  // Without the last characters, in which a newline after it has a share.
  const base64 = bytes.toString('base64').slice(0, Math.floor((bytes.length * 8) / 6));
  const isFolded = text.length <= mostFolded && !/[\r\n]/.test(text);
  return [
    ...broken(base64, base64Widths),
    ...broken(base64.replaceAll('+', '-').replaceAll('/', '_'), base64Widths),
    ...broken(hex, hexWidths),
    ...broken(hex.toUpperCase(), hexWidths),
    ...(isFolded ? broken(text, plainWidths) : []),
  ];
}

function broken(text: string, widths: readonly number[]): string[] {
  return widths.flatMap((width) => {
    if (text.length <= width) return [];
    const lines = Array.from({ length: Math.ceil(text.length / width) }, (_, at) =>
      text.slice(at * width, (at + 1) * width),
    );
    return [lines.join('\n'), lines.join('\r\n')];
  });
}

/** Programs differ in what they leave as it is, in how they write a space, and in the case of the digits. */
function urlForms(text: string): string[] {
  const lenient = encodeURIComponent(text);
  const strict = lenient.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const asForm = new URLSearchParams([['', text]]).toString().slice(1);
  const upper = [lenient, strict, strict.replaceAll('~', '%7E'), asForm, encodeURI(text)];
  return [...upper, ...upper.map((form) => form.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()))];
}

/** Lines that could be nothing else: not short ones, and not the frame of a PEM block, which every key has. */
function linesOf(text: string): string[] {
  if (!/[\r\n]/.test(text)) return [];
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.filter((line) => line.length >= minLineLength && isTelling(line) && !/^-----.*-----$/.test(line));
}

function isTelling(text: string): boolean {
  return new Set(text).size >= minDistinct;
}
