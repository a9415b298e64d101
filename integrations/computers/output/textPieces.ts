import { isUtf8 } from 'node:buffer';

/** Bytes of one stream, as text if they are UTF-8. */
export interface TextPiece {
  /** The number of output bytes before it. */
  position: number;
  /** The position of the bytes after it. */
  end: number;
  content: { text: string } | { base64: string };
}

/**
 * Cuts output into pieces of text, never in the middle of a character: an incomplete character waits for its rest.
 * Bytes that are not UTF-8 pass unchanged. Nothing is lost, and each piece has its position.
 */
export class TextPieces {
  #held: Buffer = Buffer.alloc(0);
  #position = 0;

  /** The bytes must follow the previous ones. */
  push(position: number, bytes: Uint8Array): TextPiece[] {
    if (this.#held.length === 0) this.#position = position;
    const all = this.#held.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes]);
    const length = all.length - incompleteAtEnd(all);
    this.#held = Buffer.from(all.subarray(length));
    return this.#give(all.subarray(0, length));
  }

  /** The bytes of an incomplete character, when its stream does not continue. */
  rest(): TextPiece[] {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return this.#give(held);
  }

  #give(bytes: Buffer): TextPiece[] {
    if (bytes.length === 0) return [];
    const position = this.#position;
    this.#position += bytes.length;
    const content = isUtf8(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') };
    return [{ position, end: this.#position, content }];
  }
}

/** How many bytes at the end belong to an incomplete UTF-8 character. */
export function incompleteAtEnd(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
}
