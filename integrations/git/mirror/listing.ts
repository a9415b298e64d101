import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Git } from './git.ts';

const chunkBytes = 65_536;

/** What git lists of a repository, in a file without a name: it may be more than fits into memory. */
export class Listing implements AsyncDisposable {
  readonly file: FileHandle;
  readonly bytes: number;

  private constructor(file: FileHandle, bytes: number) {
    this.file = file;
    this.bytes = bytes;
  }

  static async of(git: Git, args: readonly string[], call: { input?: string | undefined } = {}): Promise<Listing> {
    const path = join(git.home, `list-${randomBytes(9).toString('hex')}`);
    const file = await open(path, 'wx+', 0o600);
    try {
      await rm(path);
      await git.do(args, { ...call, output: { descriptor: file.fd } });
      return new Listing(file, (await file.stat()).size);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** May be called more than once. */
  open(): Readable {
    return Readable.from(this.#chunks(), { objectMode: false });
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.bytes; ) {
      const { bytesRead, buffer } = await this.file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.file.close();
  }
}
