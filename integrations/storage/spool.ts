import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

const chunkBytes = 64 * 1_024;

/**
 * Bytes on their way, in a file without a name: they take no memory, and the file is gone when this process is.
 */
export class Spool implements AsyncDisposable {
  readonly #file: FileHandle;
  #bytes = 0;
  #closed: Promise<void> | undefined;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** `folder` is made if it is missing. */
  static async open(folder: string): Promise<Spool> {
    await mkdir(folder, { recursive: true });
    const path = join(folder, `spool-${randomBytes(9).toString('hex')}`);
    const file = await open(path, 'wx+', 0o600);
    try {
      await rm(path);
    } catch (error) {
      await file.close();
      throw error;
    }
    return new Spool(file);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Appends a piece. Call it again once the one before is written. */
  async write(piece: Uint8Array): Promise<void> {
    for (let from = 0; from < piece.length; ) {
      const { bytesWritten } = await this.#file.write(piece, from, piece.length - from, this.#bytes);
      from += bytesWritten;
      this.#bytes += bytesWritten;
    }
  }

  /** All bytes, from the first. May be called more than once. */
  async *read(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.#bytes; ) {
      const { bytesRead, buffer } = await this.#file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, at);
      if (bytesRead === 0) throw new Error('A temporary file has lost its end.');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Removes the bytes. May be called more than once. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#file.close();
    return this.#closed;
  }
}
