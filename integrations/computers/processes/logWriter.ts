import { type FileHandle, open, unlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Changes } from '../../../base/async.ts';
import { Followers } from './followers.ts';
import { joinRecords, type LogPiece } from './joinRecords.ts';
import type { LogFollower } from './logReader.ts';
import type { GrowingLog, LogRoom } from './logRoom.ts';
import type { LogPace } from './pace.ts';
import { encodeRecord, isOutput, noteRecord, recordHeaderBytes } from './records.ts';
import { type Segment, segmentPath } from './segments.ts';

/** A log has at least this many segments, and more if many processes share the room. */
const fewestSegments = 8;
/** A log needs two segments: its beginning, and the one that is written. */
const leastSegments = 2;
const maxBatchBytes = 131_072;
const minSegmentBytes = 81_920; // more than one record

export interface LogLimits {
  maxLogBytes: number;
  /** How many logs may be written at once. */
  maxProcesses?: number;
  pace?: Pick<LogPace, 'waitMs'>;
  room?: LogRoom;
}

interface WrittenSegment extends Segment {
  end: number;
  /** Output within the segment that could not be written and became gaps. */
  missingBytes: number;
}

/**
 * Writes a process's log. Output is on the disk before readers get it. The log stays within its limit: a longer one
 * keeps its beginning and its end. Output that cannot be written, because the disk is full, becomes a gap, so that the
 * process goes on.
 */
export class LogWriter implements GrowingLog {
  readonly #folder: string;
  readonly #segmentBytes: number;
  readonly #batchBytes: number;
  readonly #maxSegments: number;
  /** How many segments at the beginning are kept. The oldest one after them makes room for a new one. */
  readonly #headSegments: number;
  readonly #pace: LogLimits['pace'];
  readonly #room: LogRoom | undefined;
  readonly #followers = new Followers(() => this.position);
  #diskBytes = 0;
  #segments: WrittenSegment[] = [];
  #file: FileHandle | undefined;
  /** Output that could not be written since the last record. A gap before the next record stands for it. */
  #missingBytes = 0;
  #missingNotes: LogPiece[] = [];
  #dropped = 0;
  #last: Promise<void> = Promise.resolve();
  readonly #changes = new Changes();
  #isClosed = false;

  constructor(folder: string, { maxLogBytes, maxProcesses = 1, pace, room }: LogLimits) {
    this.#folder = folder;
    this.#pace = pace;
    this.#room = room;
    const share = room === undefined ? maxLogBytes : room.maxBytes / (maxProcesses * leastSegments);
    this.#segmentBytes = Math.max(minSegmentBytes, Math.floor(Math.min(maxLogBytes / fewestSegments, share)));
    this.#maxSegments = Math.max(leastSegments, Math.floor(maxLogBytes / this.#segmentBytes));
    this.#headSegments = Math.max(1, Math.floor(this.#maxSegments / 4));
    this.#batchBytes = Math.min(maxBatchBytes, this.#segmentBytes);
    room?.add(this);
  }

  get diskBytes(): number {
    return this.#diskBytes;
  }

  /** The position after the last written record. It includes dropped bytes. */
  get position(): number {
    return this.#segments.at(-1)?.end ?? 0;
  }

  /** All output bytes so far, on disk or not. */
  get end(): number {
    return this.position + this.#missingBytes;
  }

  get droppedBytes(): number {
    return this.#segments.reduce((sum, { missingBytes }) => sum + missingBytes, this.#dropped + this.#missingBytes);
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Settles at the next write, or when the log is closed. */
  changed(): Promise<void> {
    return this.#changes.next;
  }

  /**
   * Settles when the records are on the disk, or became a gap, and more output may be written. A caller that waits for
   * it holds its process to the computer's pace.
   */
  async append(records: readonly LogPiece[]): Promise<void> {
    const written = this.#last.then(() => this.#write(records));
    this.#last = written.then(
      () => undefined,
      () => undefined,
    );
    const bytes = await written;
    if (!records.some(({ kind }) => isOutput(kind))) return;
    const waitMs = this.#pace?.waitMs(bytes, this.#followers.keepUp) ?? 0;
    if (waitMs > 0) await delay(waitMs);
  }

  /** Registers a reader. Parts of the log are kept for it. */
  followed(position: number): LogFollower {
    return this.#followers.add(position);
  }

  async close(): Promise<void> {
    await this.#last;
    this.#isClosed = true;
    await this.#closeFile();
    this.#room?.delete(this);
    this.#changes.tell();
  }

  /** Drops the oldest segment after the beginning. If only the beginning is left, drops from its end. */
  shrink(): Promise<void> | undefined {
    if (this.#segments.length <= leastSegments) return undefined;
    return this.#drop(Math.min(this.#headSegments, this.#segments.length - leastSegments));
  }

  /** Returns the number of bytes. */
  async #write(records: readonly LogPiece[]): Promise<number> {
    if (this.#isClosed) throw new Error('The log is closed.');
    let batch: LogPiece[] = [];
    let length = 0;
    let total = 0;
    const flush = async () => {
      if (length > 0) await this.#flush(batch);
      total += length;
      batch = [];
      length = 0;
    };
    for (const record of joinRecords(records)) {
      const size = recordHeaderBytes + record.payload.length;
      if (length + size > this.#batchBytes) await flush();
      batch.push(record);
      length += size;
    }
    await flush();
    return total;
  }

  /** Writes records, and before them a gap for lost output. */
  async #flush(records: LogPiece[]): Promise<void> {
    const batch: Buffer[] = [];
    let position = this.position;
    if (this.#missingBytes > 0) {
      batch.push(encodeRecord(noteRecord('gap', position, { droppedBytes: this.#missingBytes })));
      position += this.#missingBytes;
    }
    for (const record of [...this.#missingNotes, ...records]) {
      batch.push(encodeRecord({ ...record, position }));
      if (isOutput(record.kind)) position += record.payload.length;
    }
    try {
      await this.#put(batch.length === 1 ? (batch[0] as Buffer) : Buffer.concat(batch), position);
    } catch {
      this.#missingBytes = position - this.position;
      // Only the last lost size of a terminal counts.
      this.#missingNotes = [...this.#missingNotes, ...records].filter(({ kind }) => !isOutput(kind)).slice(-1);
      return;
    }
    this.#missingBytes = 0;
    this.#missingNotes = [];
  }

  async #put(bytes: Buffer, end: number): Promise<void> {
    await this.#room?.make(bytes.length);
    const segment = await this.#segmentFor(bytes.length);
    const file = this.#file as FileHandle;
    try {
      await writeAll(file, bytes, segment.size);
    } catch (error) {
      // Remove a partial write, so that it is never read.
      await file.truncate(segment.size).catch(() => undefined);
      throw error;
    }
    segment.size += bytes.length;
    segment.end = end;
    segment.missingBytes += this.#missingBytes;
    this.#diskBytes += bytes.length;
    this.#changes.tell();
  }

  async #segmentFor(length: number): Promise<WrittenSegment> {
    const current = this.#segments.at(-1);
    if (current !== undefined && this.#file !== undefined && current.size + length <= this.#segmentBytes)
      return current;
    await this.#closeFile();
    if (this.#segments.length >= this.#maxSegments) await this.#drop(this.#headSegments);
    const start = current?.end ?? 0;
    const index = (current?.index ?? -1) + 1;
    const path = segmentPath(this.#folder, index, start);
    this.#file = await open(path, 'w', 0o600);
    const segment = { path, index, start, end: start, size: 0, missingBytes: 0 };
    this.#segments.push(segment);
    return segment;
  }

  async #drop(at: number): Promise<void> {
    const segment = this.#segments[at];
    if (segment === undefined) return;
    await this.#followers.past(segment.end);
    // Another process may have dropped the segment meanwhile, for room.
    const now = this.#segments.indexOf(segment);
    if (now < 0) return;
    this.#segments.splice(now, 1);
    this.#diskBytes -= segment.size;
    this.#dropped += segment.end - segment.start;
    await unlink(segment.path);
  }

  async #closeFile(): Promise<void> {
    // Some file systems report a full disk only at the close. It is then unknown which output is missing.
    await this.#file?.close().catch(() => undefined);
    this.#file = undefined;
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
