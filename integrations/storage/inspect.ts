import { createHash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import { detectContentType, isText, sampleBytes } from './contentType.ts';
import { partBytes } from './sendObject.ts';

/** Texts up to this size are kept in memory as a whole, for the search index. */
export const maxIndexedTextBytes = 256 * 1024;

export interface InspectOptions {
  /** Distinguishes kinds of text. */
  fileName: string;
  /** Another name that the file may get instead. */
  otherName?: string | undefined;
  maxBytes: number;
  /**
   * Counts bytes against the space's quota, and throws if there is no room. It is awaited before the first part is
   * sent, even for 0 bytes. Later parts are counted while they are sent, and all counts finish before the end.
   */
  reserve(bytes: number): Promise<void>;
}

/** What is known about a file once its last byte has passed. */
export interface Inspected {
  size: number;
  contentType: string;
  sha256: Buffer;
  /** The complete text of a small text file. */
  text: string | undefined;
  /** The content type under `otherName`. */
  contentTypeOfOther?: string | undefined;
}

/** Passes bytes on. On the way it counts them, hashes them, and keeps their beginning. */
export class Inspection {
  private readonly hash = createHash('sha256');
  private readonly options: InspectOptions;
  private size = 0;
  private reserved: number | undefined;
  private reserving: Promise<void> = Promise.resolve();
  private beginning: Buffer[] = [];

  constructor(options: InspectOptions) {
    this.options = options;
  }

  /** Inspects the next bytes. Keeps no reference to them. */
  add(chunk: Buffer): void {
    this.size += chunk.length;
    if (this.size > this.options.maxBytes) throw fileTooLarge(this.options.maxBytes);
    this.hash.update(chunk);
    // Copied, because the sender reuses the memory.
    if (this.size - chunk.length <= maxIndexedTextBytes) this.beginning.push(Buffer.from(chunk));
  }

  async *pass(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      this.add(chunk);
      if (this.size - (this.reserved ?? 0) >= partBytes) await this.reserveNext();
      yield chunk;
    }
    await this.reserveNext();
    await this.reserving;
  }

  async result(): Promise<Inspected> {
    const beginning = Buffer.concat(this.beginning);
    const { fileName, otherName } = this.options;
    const typeAs = (name: string) => detectContentType(beginning.subarray(0, sampleBytes), name);
    const contentType = await typeAs(fileName);
    const isSmallText = this.size <= maxIndexedTextBytes && this.size > 0 && isText(beginning);
    return {
      size: this.size,
      contentType,
      sha256: this.hash.digest(),
      text: isSmallText ? beginning.toString('utf8') : undefined,
      ...(otherName !== undefined && {
        contentTypeOfOther: otherName === fileName ? contentType : await typeAs(otherName),
      }),
    };
  }

  /** Awaits the previous count, and the first time this one too, so that nothing is sent before a row exists. */
  private async reserveNext(): Promise<void> {
    await this.reserving;
    const isFirst = this.reserved === undefined;
    const bytes = this.size - (this.reserved ?? 0);
    if (bytes === 0 && !isFirst) return;
    this.reserving = this.options.reserve(bytes);
    // The error is reported to the caller that awaits it.
    this.reserving.catch(() => undefined);
    this.reserved = this.size;
    if (isFirst) await this.reserving;
  }
}

function fileTooLarge(maxBytes: number): DomainError {
  const mebibytes = Math.floor(maxBytes / 1_048_576);
  return new DomainError('tooLarge', 'FILE_TOO_LARGE', `A file has at most ${mebibytes} MiB.`);
}
