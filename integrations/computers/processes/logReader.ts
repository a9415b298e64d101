import type { FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
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

/** A log as its readers see it, while it is written or after that. */
export interface ReadableLog {
  segments(): Promise<readonly Segment[]> | readonly Segment[];
  /** Whether nothing will be added. */
  isOver(): boolean;
  changed(): Promise<void>;
  /** Somebody reads it as it is written: what they have not read yet is not dropped, as long as they keep up. */
  followed?(position: number): LogFollower;
  /** The end that its process is known to have, where the log itself has none. */
  exit(): Exit;
  /** Of a log that is over: all the output that there was. What is missing at its end could not be written. */
  end(): number;
}

export interface LogFollower {
  /** It has read up to here. */
  reached(position: number): void;
  left(): void;
}

interface LogRequest {
  after: number;
  follow: boolean;
  signal?: AbortSignal;
  /** Of one that follows: whether it can do without what is dropped before it comes there. */
  mayMiss?: boolean;
}

const pieceBytes = 131_072;
/** Records that are smaller than this on average are joined. */
const smallRecordBytes = 4_096;
/** How many small pieces a reader gets who follows: what comes meanwhile comes together. */
const piecesPace = { perSecond: 50, atOnce: 50 };
const smallPieceBytes = 16_384;

/**
 * The records of a log from a position on, encoded, in pieces that end with a record. A reader holds one piece in
 * memory, however slow it is; what was dropped before it came there is a `gap`. Throws 416 `POSITION_UNKNOWN`.
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
      // Asked before it is read: what is written in between is heard of.
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
      if (waitMs > 0) await either(delay(waitMs), signal);
      await either(changed, signal);
    }
  } finally {
    follower?.left();
    await cursor.close();
  }
}

/** Where a reader is in a log. */
class LogCursor {
  /** The output up to here has been given. */
  position: number;
  hasExited = false;
  /** Whether a segment was dropped before it could be read: there are others now. */
  isStale = false;
  /** Up to where the log has been read, while that is before `position`. */
  #seen = 0;
  #segment: { index: number; file: FileHandle; at: number } | undefined;

  constructor(after: number) {
    this.position = after;
  }

  /** What there is now. */
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

  /** Where there is nothing to be read before a position. */
  *gapUpTo(end: number): Generator<Buffer> {
    if (end <= this.position) return;
    yield encodeRecord(noteRecord('gap', this.position, { droppedBytes: end - this.position }));
    this.position = end;
  }

  /** Throws where the log, or all that there was, ends before the position that was asked for. */
  requireReached(end: number): void {
    if (Math.max(this.#seen, end) < this.position) {
      throw new DomainError('rangeNotSatisfiable', 'POSITION_UNKNOWN', 'The process has not put out so much.');
    }
  }

  async close(): Promise<void> {
    await this.#segment?.file.close();
    this.#segment = undefined;
  }

  /** The segment to read on in: where it was dropped, the next. At first, the one that reaches the position. */
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

  /** Also what is written to it meanwhile. */
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

  /** How much of a piece is whole records, and those of them that are wanted. */
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

/** A record from a position within it on. */
function restOf(record: OutputRecord, position: number): OutputRecord {
  const passed = position - record.position;
  if (isOutput(record.kind)) return { kind: record.kind, position, payload: record.payload.subarray(passed) };
  return noteRecord('gap', position, { droppedBytes: positionAfter(record) - position });
}

function either(changed: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return changed;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    void changed.then(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    if (signal.aborted) stop();
  });
}
