import type { Duplex } from 'node:stream';

/** Reads a connection in exact pieces. The other side decides what comes, so whoever asks bounds how much. */
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

  /** The next bytes. Throws where the connection ends before. */
  async read(count: number): Promise<Buffer> {
    while (this.#length < count) {
      const chunk = this.#source.read() as Buffer | null;
      if (chunk !== null) {
        this.#chunks.push(chunk);
        this.#length += chunk.length;
        continue;
      }
      if (this.#source.readableEnded || this.#source.destroyed) throw new ConnectionEnded();
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

  constructor() {
    super('The connection has ended.');
  }
}
