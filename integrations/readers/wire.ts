import type { Readings } from './kinds/kinds.ts';
import type { Readable } from './kinds/limits.ts';

export interface Job {
  kind: Readable;
  bytes: Uint8Array;
}

/** A reading process answers `ready` once, and then for each job `taken` when it has all bytes, and the result. */
export type Answer = { ready: true } | { taken: true } | { read: Readings[Readable] } | { failed: true };

/** More than the longest text needs when escaped: a process that sends more is broken or compromised. */
const maxAnswerBytes = 16 * 1_048_576;

/** Precedes the bytes of a job: the length of a header, and the header. */
export function jobHeader({ kind, bytes }: Job): Buffer {
  const header = Buffer.from(JSON.stringify({ kind, size: bytes.length }));
  return Buffer.concat([lengthOf(header), header]);
}

export function answerFrame(answer: Answer): Buffer {
  const body = Buffer.from(JSON.stringify(answer));
  return Buffer.concat([lengthOf(body), body]);
}

/** Assembles the answers of a process from chunks. */
export class AnswerStream {
  #chunks: Buffer[] = [];
  #length = 0;

  /** The answers that this chunk completes. Throws for an invalid answer. */
  *add(chunk: Buffer): Generator<Answer> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= 4) {
      if ((this.#chunks[0] as Buffer).length < 4) this.#chunks = [Buffer.concat(this.#chunks)];
      const end = 4 + (this.#chunks[0] as Buffer).readUInt32BE();
      if (end > 4 + maxAnswerBytes) throw new Error('The answer of a reading process is too long.');
      if (this.#length < end) return;
      const whole = Buffer.concat(this.#chunks);
      this.#chunks = [whole.subarray(end)];
      this.#length -= end;
      yield JSON.parse(whole.toString('utf8', 4, end)) as Answer;
    }
  }
}

function lengthOf(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return length;
}
