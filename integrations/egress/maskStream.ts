import { Transform, type TransformCallback } from 'node:stream';

/** Shorter texts are too common. No server repeats longer ones by accident. */
const [minBytes, maxBytes] = [8, 8_192];
const mask = '*';

/** Up to this many bytes that may begin a text are passed on unmasked: nearly every output ends with such bytes. */
const commonBytes = 2;

/**
 * Masks some texts in a stream of bytes with asterisks, wherever the stream is cut, and keeps its length. It holds back
 * only bytes that may begin a text, until more bytes come, or none for `quietMs`. Then it passes them on, masked if
 * they are more than two, and still recognises the text when the rest comes.
 */
export class MaskStream extends Transform {
  readonly #texts: readonly Buffer[];
  readonly #quietMs: number | undefined;
  /** The last bytes, which may begin a text, and how many of them have been passed on. */
  #begun: Buffer = Buffer.alloc(0);
  #given = 0;
  #quiet: NodeJS.Timeout | undefined;

  constructor(texts: Iterable<string>, { quietMs }: { quietMs?: number } = {}) {
    super();
    this.#texts = maskable(texts).map((text) => Buffer.from(text, 'utf8'));
    this.#quietMs = quietMs;
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    clearTimeout(this.#quiet);
    const bytes = Buffer.concat([this.#begun, piece]);
    for (const text of this.#texts) {
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) {
        bytes.fill(mask, at, at + text.length);
      }
    }
    const begun = Math.max(0, ...this.#texts.map((text) => begunAtEnd(bytes, text)));
    const end = bytes.length - begun;
    const given = bytes.subarray(this.#given, Math.max(this.#given, end));
    this.#begun = bytes.subarray(end);
    this.#given = Math.max(0, this.#given - end);
    if (this.#quietMs !== undefined && begun > this.#given)
      this.#quiet = setTimeout(() => this.#giveBegun(), this.#quietMs);
    done(null, given);
  }

  override _flush(done: TransformCallback): void {
    clearTimeout(this.#quiet);
    done(null, this.#begun.subarray(this.#given));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#quiet);
    done(error);
  }

  #giveBegun(): void {
    const held = this.#begun.subarray(this.#given);
    this.#given = this.#begun.length;
    this.push(this.#begun.length > commonBytes ? Buffer.alloc(held.length, mask) : Buffer.from(held));
  }
}

export function maskText(text: string, secrets: Iterable<string>): string {
  return maskable(secrets).reduce((masked, secret) => masked.replaceAll(secret, mask.repeat(secret.length)), text);
}

function maskable(texts: Iterable<string>): string[] {
  return [...new Set(texts)].filter((text) => text.length >= minBytes && text.length <= maxBytes);
}

/** How many of the last bytes are the beginning of the text. */
function begunAtEnd(bytes: Buffer, text: Buffer): number {
  const from = Math.max(0, bytes.length - text.length + 1);
  const first = text[0] ?? 0;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    const length = bytes.length - at;
    if (bytes.compare(text, 0, length, at) === 0) return length;
  }
  return 0;
}
