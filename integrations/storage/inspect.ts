import { createHash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import { detectContentType, isText, sampleBytes } from './contentType.ts';
import { partBytes } from './sendObject.ts';

/** Texts up to this size are kept in memory as a whole, for the search. */
export const maxIndexedTextBytes = 256 * 1024;

export interface InspectOptions {
  /** For telling kinds of text apart. */
  fileName: string;
  /** A name that it may have instead. */
  otherName?: string | undefined;
  maxBytes: number;
  /**
   * Counts bytes against the space's quota; throws when there is no room. It is awaited before the first part is sent,
   * even for no bytes; later parts are counted while they are sent, and all of them before the end.
   */
  reserve(bytes: number): Promise<void>;
}

/** What is known about a file once its last byte has passed. */
export interface Inspected {
  size: number;
  contentType: string;
  sha256: Buffer;
  /** The whole of a small text file. */
  text: string | undefined;
  /** Its type under its other name. */
  contentTypeOfOther?: string | undefined;
}

/** Passes bytes on, and on the way counts them, hashes them, and keeps their beginning. */
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

  /** Looks at the next bytes, and keeps no reference to them. */
  add(chunk: Buffer): void {
    this.size += chunk.length;
    if (this.size > this.options.maxBytes) throw fileTooLarge(this.options.maxBytes);
    this.hash.update(chunk);
    // A copy: the sender reuses the memory.
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

  /** Waits for the previous count and, the first time, for this one: nothing is sent before a row names it. */
  private async reserveNext(): Promise<void> {
    await this.reserving;
    const isFirst = this.reserved === undefined;
    const bytes = this.size - (this.reserved ?? 0);
    if (bytes === 0 && !isFirst) return;
    this.reserving = this.options.reserve(bytes);
    // Reported to whoever awaits it.
    this.reserving.catch(() => undefined);
    this.reserved = this.size;
    if (isFirst) await this.reserving;
  }
}

function fileTooLarge(maxBytes: number): DomainError {
  const mebibytes = Math.floor(maxBytes / 1_048_576);
  return new DomainError('tooLarge', 'FILE_TOO_LARGE', `A file has at most ${mebibytes} MiB.`);
}
