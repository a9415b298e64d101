import type { Duplex } from 'node:stream';

/** Reads exact numbers of bytes from a connection. Callers must limit the numbers that the other side gives. */
export class ByteReader {
  readonly #source: Duplex;
  #chunks: Buffer[] = [];
  #length = 0;
  #wake: (() => void) | undefined;

  constructor(source: Duplex) {
    this.#source = source;
    const wake = () => this.#wake?.();
    for (const event of ['readable', 'end', 'close', 'error']) source.on(event, wake);
  }

  /** The next bytes. Throws {@link ConnectionEnded} when the connection ends first. */
  async read(count: number): Promise<Buffer> {
    while (this.#length < count) {
      const chunk = this.#source.read() as Buffer | null;
      if (chunk !== null) {
        this.#chunks.push(chunk);
        this.#length += chunk.length;
        continue;
      }
      if (this.#source.readableEnded || this.#source.destroyed) throw new ConnectionEnded('The connection has ended.');
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#take(count);
  }

  #take(count: number): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const rest = all.subarray(count);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return all.subarray(0, count);
  }
}

/** The other side has closed the connection. */
export class ConnectionEnded extends Error {
  override readonly name = 'ConnectionEnded';
}

/** The greeting of the protocol version that we speak. Both sides send it. */
export const version = 'RFB 003.008\n';

export const setEncodingsKind = 2;
/** Pseudo-encodings with which a server reports its size. */
export const desktopSizeEncoding = -223;
export const extendedDesktopSizeEncoding = -308;

/** A viewer’s message with the encodings that it accepts. */
export function setEncodings(encodings: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * encodings.length);
  message.writeUInt8(setEncodingsKind, 0);
  message.writeUInt16BE(encodings.length, 2);
  for (const [at, encoding] of encodings.entries()) message.writeInt32BE(encoding, 4 + 4 * at);
  return message;
}
