import type { FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { OutputRecord } from '../types.ts';
import { joinEncoded } from './joinRecords.ts';
import { Pace } from './pace.ts';
import { openPlainFile } from './plainFiles.ts';
import {
  type Exit,
  encodeRecord,
  headerAt,
  isOutput,
  noteRecord,
  positionAfter,
  recordHeaderBytes,
} from './records.ts';
import type { Segment } from './segments.ts';

/** A log for its readers, while it is written or later. */
export interface ReadableLog {
  segments(): Promise<readonly Segment[]> | readonly Segment[];
  /** Whether the log is complete. */
  isOver(): boolean;
  changed(): Promise<void>;
  /** Registers a reader that follows the log. Parts that it has not read are kept while it keeps up. */
  followed?(position: number): LogFollower;
  /** The known end of the process, if the log itself has none. */
  exit(): Exit;
  /** For a complete log: how much output there was. Output missing at the end could not be written. */
  end(): number;
}

export interface LogFollower {
  reached(position: number): void;
  left(): void;
}

interface LogRequest {
  after: number;
  follow: boolean;
  signal?: AbortSignal;
  /** For a follower: whether output may be dropped before the follower reads it. */
  mayMiss?: boolean;
}

const pieceBytes = 131_072;
/** Records with a smaller average size are joined. */
const smallRecordBytes = 4_096;
/** The rate of small pieces for a follower. Output that comes in between is sent together. */
const piecesPace = { perSecond: 50, atOnce: 50 };
const smallPieceBytes = 16_384;

/**
 * The encoded records of a log from a position on, in pieces that end with a record. A reader holds one piece in
 * memory, however slow it is. Output that was dropped before it was read is a `gap`. Throws 416 `POSITION_UNKNOWN`.
 */
export async function* readLog(
  log: ReadableLog,
  { after, follow, signal, mayMiss = false }: LogRequest,
): AsyncGenerator<Buffer> {
  const cursor = new LogCursor(after);
  const pace = new Pace(piecesPace);
  const follower = follow && !mayMiss ? log.followed?.(after) : undefined;
  try {
    for (;;) {
      // Get this before reading, so that no write in between is missed.
      const changed = log.changed();
      const isOver = log.isOver();
      let given = 0;
      for await (const piece of cursor.read(await log.segments())) {
        given += piece.length;
        yield piece;
        follower?.reached(cursor.position);
      }
      signal?.throwIfAborted();
      if (cursor.isStale) continue;
      cursor.requireReached(isOver ? log.end() : 0);
      if (cursor.hasExited) return;
      if (isOver) {
        yield* cursor.gapUpTo(log.end());
        yield encodeRecord(noteRecord('exit', cursor.position, log.exit()));
        return;
      }
      if (!follow) return;
      const waitMs = given > 0 && given < smallPieceBytes ? pace.take(1) : 0;
      if (waitMs > 0) await untilAborted(delay(waitMs), signal);
      await untilAborted(changed, signal);
    }
  } finally {
    follower?.left();
    await cursor.close();
  }
}

/** A reader's place in a log. */
class LogCursor {
  /** Output up to here was given to the reader. */
  position: number;
  hasExited = false;
  /** Whether a segment was dropped before it could be read, so that the segments must be listed again. */
  isStale = false;
  /** How far the log was parsed, even before `position`. */
  #seen = 0;
  #segment: { index: number; file: FileHandle; at: number } | undefined;

  constructor(after: number) {
    this.position = after;
  }

  /** Reads what the segments have now. */
  async *read(segments: readonly Segment[]): AsyncGenerator<Buffer> {
    this.isStale = false;
    for (;;) {
      const segment = this.#current(segments);
      if (segment === undefined) return;
      if (this.#segment?.index !== segment.index && !(await this.#open(segment))) return;
      yield* this.gapUpTo(segment.start);
      yield* this.#readSegment(segment);
      const next = segments.find(({ index }) => index > segment.index);
      if (this.hasExited || next === undefined) return;
      if (!(await this.#open(next))) return;
    }
  }

  /** Yields a gap up to `end`, if the reader has not reached it. */
  *gapUpTo(end: number): Generator<Buffer> {
    if (end <= this.position) return;
    yield encodeRecord(noteRecord('gap', this.position, { droppedBytes: end - this.position }));
    this.position = end;
  }

  /** Throws if the log ends before the requested position. */
  requireReached(end: number): void {
    if (Math.max(this.#seen, end) < this.position) {
      throw new DomainError('rangeNotSatisfiable', 'POSITION_UNKNOWN', 'The process has not written that much output.');
    }
  }

  async close(): Promise<void> {
    await this.#segment?.file.close();
    this.#segment = undefined;
  }

  /** The segment to continue in; after a drop, the next one. At first, the segment that contains the position. */
  #current(segments: readonly Segment[]): Segment | undefined {
    const open = this.#segment;
    if (open !== undefined) return segments.find(({ index }) => index >= open.index);
    return segments.findLast(({ start }) => start < this.position) ?? segments[0];
  }

  async #open(segment: Segment): Promise<boolean> {
    await this.close();
    try {
      this.#segment = {
        index: segment.index,
        file: await openPlainFile(dirname(segment.path), basename(segment.path)),
        at: 0,
      };
      this.#seen = Math.max(this.#seen, segment.start);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.isStale = true;
      return false;
    }
  }

  /** Reads a segment, including what is written to it meanwhile. */
  async *#readSegment(segment: Segment): AsyncGenerator<Buffer> {
    const open = this.#segment;
    while (open !== undefined && open.index === segment.index && open.at < segment.size && !this.hasExited) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, segment.size - open.at));
      const { bytesRead } = await open.file.read(piece, 0, piece.length, open.at);
      const { length, wanted } = this.#take(piece.subarray(0, bytesRead));
      // The end of a record is missing: its writer was killed.
      if (length === 0) return;
      open.at += length;
      if (wanted.length > 0) yield wanted;
    }
  }

  /** Finds the whole records of a piece, and the part of them that the reader wants. */
  #take(piece: Buffer): { length: number; wanted: Buffer } {
    let at = 0;
    let from: number | undefined;
    let head: Buffer | undefined;
    let count = 0;
    for (let header = headerAt(piece, at); header !== undefined; header = headerAt(piece, at)) {
      const { kind, position, length } = header;
      const start = at + recordHeaderBytes;
      if (piece.length < start + length) break;
      const record = { kind, position, payload: piece.subarray(start, start + length) };
      const end = positionAfter(record);
      if (end > this.position || position === this.position) {
        if (position < this.position) {
          head = encodeRecord(restOf(record, this.position));
          from = start + length;
        }
        from ??= at;
        this.position = end;
      }
      at = start + length;
      count++;
      this.#seen = end;
      if (kind === 'exit') {
        this.hasExited = true;
        break;
      }
    }
    const rest = from === undefined ? Buffer.alloc(0) : piece.subarray(from, at);
    const wanted = head === undefined ? rest : Buffer.concat([head, rest]);
    return { length: at, wanted: count > 1 && at / count < smallRecordBytes ? joinEncoded(wanted) : wanted };
  }
}

/** A record cut to begin at a position within it. */
function restOf(record: OutputRecord, position: number): OutputRecord {
  const passed = position - record.position;
  if (isOutput(record.kind)) return { kind: record.kind, position, payload: record.payload.subarray(passed) };
  return noteRecord('gap', position, { droppedBytes: positionAfter(record) - position });
}
