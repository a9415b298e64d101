import { createHash } from 'node:crypto';
import { DomainError } from '../../models/errors.ts';
import { detectContentType, isText, sampleBytes } from './contentType.ts';

/** Texts up to this size are kept whole in memory, for the search. */
export const maxIndexedTextBytes = 256 * 1024;
/** How often the account of bytes is asked. */
const reserveStepBytes = 8 * 1024 * 1024;

export interface InspectOptions {
  /** For telling kinds of text apart. */
  fileName: string;
  maxBytes: number;
  /**
   * Counts bytes against the space's quota; it throws when there is no room. No byte is passed on that is not counted. It is called at
   * least once, for no bytes where there are none.
   */
  reserve(bytes: number): Promise<void>;
}

/** What is known of a file when its last byte has passed. */
export interface Inspected {
  size: number;
  contentType: string;
  sha256: Buffer;
  /** The whole of a small text file. */
  text: string | undefined;
}

/** Passes bytes on, and on the way counts them, hashes them, and keeps their beginning. */
export class Inspection {
  private readonly hash = createHash('sha256');
  private readonly options: InspectOptions;
  private size = 0;
  private reserved: number | undefined;
  private beginning: Buffer[] = [];

  constructor(options: InspectOptions) {
    this.options = options;
  }

  async *pass(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      this.size += chunk.length;
      if (this.size > this.options.maxBytes) throw fileTooLarge(this.options.maxBytes);
      this.hash.update(chunk);
      if (this.size - chunk.length <= maxIndexedTextBytes) this.beginning.push(chunk);
      if (this.size - (this.reserved ?? 0) >= reserveStepBytes) await this.reserveRest();
      yield chunk;
    }
    await this.reserveRest();
  }

  async result(): Promise<Inspected> {
    const beginning = Buffer.concat(this.beginning);
    const contentType = await detectContentType(beginning.subarray(0, sampleBytes), this.options.fileName);
    const isSmallText = this.size <= maxIndexedTextBytes && this.size > 0 && isText(beginning);
    return {
      size: this.size,
      contentType,
      sha256: this.hash.digest(),
      text: isSmallText ? beginning.toString('utf8') : undefined,
    };
  }

  private async reserveRest(): Promise<void> {
    const bytes = this.size - (this.reserved ?? 0);
    if (bytes === 0 && this.reserved !== undefined) return;
    await this.options.reserve(bytes);
    this.reserved = this.size;
  }
}

function fileTooLarge(maxBytes: number): DomainError {
  const mebibytes = Math.floor(maxBytes / 1_048_576);
  return new DomainError('tooLarge', 'FILE_TOO_LARGE', `A file has at most ${mebibytes} MiB.`);
}
