import type { UiChunk } from './chunks.ts';

/** A committed run of chunks of one turn: `firstSeq..lastSeq`, one JSON text a line, in `lines`. */
export interface CommittedSegment {
  turnId: string;
  firstSeq: number;
  lastSeq: number;
  lines: string;
  /**
   * Whether the turn ended, or began to wait for its client, in the same transaction, so that this response is
   * complete.
   */
  rests: boolean;
}

/** Called after every commit of this process. */
export type CommitListener = (segment: CommittedSegment) => void;

/** JSON text never holds a raw line feed, so a line is one chunk and readers split without parsing. */
export function encodeChunks(chunks: UiChunk[]): string {
  return chunks.map((chunk) => JSON.stringify(chunk)).join('\n');
}

export function decodeLines(lines: string): UiChunk[] {
  return lines.split('\n').map((line) => JSON.parse(line) as UiChunk);
}

/**
 * The writer's epoch is old because another writer has taken over, or the turn has ended. The writer must not continue.
 */
export class WriterFencedError extends Error {
  override readonly name = 'WriterFencedError';
  constructor(turnId: string) {
    super(`The writer of ${turnId} has been fenced off.`);
  }
}

/** A run of chunks that no packet to MySQL can carry. Only its own turn fails. */
export class SegmentTooLargeError extends Error {
  override readonly name = 'SegmentTooLargeError';
  constructor(turnId: string, bytes: number) {
    super(`A chunk of ${turnId} has ${bytes} bytes, more than the database takes at once.`);
  }
}
