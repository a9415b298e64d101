import { createHash, type Hash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';

/** What was found of a content: it is another one than was stored, or the store no longer has it. */
export type Damage = 'damaged' | 'missing';

/** Who knows what objects' contents are, and is told what was found of them: `models/drive/findings.ts`. */
export interface Contents {
  find(key: string): Promise<KnownContent | undefined>;
  /** Null says that the content is as it was stored. */
  note(key: string, finding: Damage | null): Promise<unknown>;
}

export interface KnownContent {
  /** Null where it was stored before hashes were kept. */
  sha256: Buffer | null;
  /** `suspect` is to be looked at before it is served in part. */
  finding: 'suspect' | Damage | null;
  /** When that was found; null where nothing was. */
  foundAt: Date | null;
}

/** Holds the bytes of a whole object against the hash that it was stored with, as they pass. Without a hash, all bytes do. */
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

  /** After the last bytes were added, and before they are passed on. Throws 502 `CONTENT_DAMAGED`. */
  end(): void {
    const { sha256 } = this.#known;
    if (sha256 !== null && !this.#hash.digest().equals(sha256)) throw damageError('damaged');
    this.#hasEnded = true;
  }

  /**
   * Whether what was found before no longer holds: all bytes have passed, and are as they were stored. Of content whose
   * hash is not known, they say only that it is not missing.
   */
  get isRefuted(): boolean {
    const { sha256, finding } = this.#known;
    return this.#hasEnded && finding !== null && (sha256 !== null || finding === 'missing');
  }

  /** Passes bytes on, the last of them only where the whole is as it was stored. */
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

/** What a failed read says of a content; undefined where it says nothing. */
export function damageOf(error: unknown): Damage | undefined {
  if (!(error instanceof DomainError)) return undefined;
  if (error.code === 'CONTENT_DAMAGED') return 'damaged';
  return error.code === 'CONTENT_MISSING' ? 'missing' : undefined;
}
