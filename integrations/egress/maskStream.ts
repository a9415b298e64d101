import { Transform, type TransformCallback } from 'node:stream';

/** Shorter texts are too common; longer ones come back from no server by accident. */
const [minBytes, maxBytes] = [8, 8_192];
const mask = '*';

/**
 * Writes asterisks over some texts in a stream of bytes, wherever it is cut, and leaves its length as it is. It holds
 * back only what may be the beginning of one.
 */
export class MaskStream extends Transform {
  readonly #texts: readonly Buffer[];
  #held: Buffer = Buffer.alloc(0);

  constructor(texts: Iterable<string>) {
    super();
    this.#texts = maskable(texts).map((text) => Buffer.from(text, 'utf8'));
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    const bytes = Buffer.concat([this.#held, piece]);
    for (const text of this.#texts) {
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) {
        bytes.fill(mask, at, at + text.length);
      }
    }
    const held = Math.max(0, ...this.#texts.map((text) => begunAtEnd(bytes, text)));
    this.#held = bytes.subarray(bytes.length - held);
    done(null, bytes.subarray(0, bytes.length - held));
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#held);
  }
}

export function maskText(text: string, secrets: Iterable<string>): string {
  return maskable(secrets).reduce((masked, secret) => masked.replaceAll(secret, mask.repeat(secret.length)), text);
}

function maskable(texts: Iterable<string>): string[] {
  return [...new Set(texts)].filter((text) => text.length >= minBytes && text.length <= maxBytes);
}

/** How many of the last bytes are the first ones of the text. */
function begunAtEnd(bytes: Buffer, text: Buffer): number {
  const from = Math.max(0, bytes.length - text.length + 1);
  const first = text[0] ?? 0;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    const length = bytes.length - at;
    if (bytes.compare(text, 0, length, at) === 0) return length;
  }
  return 0;
}
