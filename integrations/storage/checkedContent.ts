import { createHash, type Hash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';

/** A finding about a content: it differs from what was stored, or the store no longer has it. */
export type Damage = 'damaged' | 'missing';

/** Reads and records findings about objects' contents: `models/drive/findings.ts`. */
export interface Contents {
  find(key: string): Promise<KnownContent | undefined>;
  /** Null means that the content is as it was stored. */
  note(key: string, finding: Damage | null): Promise<unknown>;
}

export interface KnownContent {
  /** Null if the object was stored before hashes were kept. */
  sha256: Buffer | null;
  /** A `suspect` must be checked before a part of it is served. */
  finding: 'suspect' | Damage | null;
  /** When this was found. Null if there is no finding. */
  foundAt: Date | null;
}

/** Compares a whole object's bytes, as they pass, with its stored hash. Without a hash, any bytes match. */
export class ContentCheck {
  readonly #hash: Hash = createHash('sha256');
  readonly #known: KnownContent;
  #hasEnded = false;

  constructor(known: KnownContent) {
    this.#known = known;
  }

  add(bytes: Uint8Array): void {
    if (this.#known.sha256 !== null) this.#hash.update(bytes);
  }

  /** Call after the last bytes were added, and before they are passed on. Throws 502 `CONTENT_DAMAGED`. */
  end(): void {
    const { sha256 } = this.#known;
    if (sha256 !== null && !this.#hash.digest().equals(sha256)) throw damageError('damaged');
    this.#hasEnded = true;
  }

  /**
   * True if an earlier finding no longer holds: all bytes have passed and match the hash. Without a known hash, this
   * only proves that the content is not missing.
   */
  get isRefuted(): boolean {
    const { sha256, finding } = this.#known;
    return this.#hasEnded && finding !== null && (sha256 !== null || finding === 'missing');
  }

  /** Passes bytes on. The last chunk passes only if the whole content is as it was stored. */
  async *pass(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let last: Buffer | undefined;
    for await (const chunk of bytes) {
      this.add(chunk);
      if (last !== undefined) yield last;
      last = chunk;
    }
    this.end();
    if (last !== undefined) yield last;
  }
}

export function damageError(damage: Damage, cause?: unknown): DomainError {
  return damage === 'damaged'
    ? new DomainError('upstream', 'CONTENT_DAMAGED', 'The content is not as it was stored.', { cause })
    : new DomainError('upstream', 'CONTENT_MISSING', 'The object store does not have the content.', { cause });
}

/** The damage that a failed read reveals. Undefined if the failure says nothing about the content. */
export function damageOf(error: unknown): Damage | undefined {
  if (!(error instanceof DomainError)) return undefined;
  if (error.code === 'CONTENT_DAMAGED') return 'damaged';
  return error.code === 'CONTENT_MISSING' ? 'missing' : undefined;
}
