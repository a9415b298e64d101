import { type FileHandle, open, unlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Followers } from './followers.ts';
import { joinRecords, type LogPiece } from './joinRecords.ts';
import type { LogFollower } from './logReader.ts';
import type { GrowingLog, LogRoom } from './logRoom.ts';
import type { LogPace } from './pace.ts';
import { encodeRecord, isOutput, noteRecord, recordHeaderBytes } from './records.ts';
import { type Segment, segmentPath } from './segments.ts';

/** A log is kept in so many segments, or more where what all may take has to do for many processes. */
const fewestSegments = 8;
/** What a log needs: its beginning, and where it is written. */
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
  /** Output between its start and its end that could not be written: its gaps. */
  missingBytes: number;
}

/**
 * Writes a process’s log. What it has written is on disk before anybody is told, and takes no more room than it may: a
 * log that is longer keeps its beginning and its end. Output that cannot be written, because the disk is full, is a gap
 * in the log: the process is not to end for that.
 */
export class LogWriter implements GrowingLog {
  readonly #folder: string;
  readonly #segmentBytes: number;
  readonly #batchBytes: number;
  readonly #maxSegments: number;
  /** Of the segments, the first ones are the beginning; of the rest, the oldest goes for a new one. */
  readonly #headSegments: number;
  readonly #pace: LogLimits['pace'];
  readonly #room: LogRoom | undefined;
  readonly #followers = new Followers(() => this.position);
  #diskBytes = 0;
  #segments: WrittenSegment[] = [];
  #file: FileHandle | undefined;
  /** What could not be written since the last record, and is told by a gap before the next. */
  #missingBytes = 0;
  #missingNotes: LogPiece[] = [];
  #dropped = 0;
  #last: Promise<void> = Promise.resolve();
  #changed = Promise.withResolvers<void>();
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

  /** The output bytes that are on disk, with those that were dropped. */
  get position(): number {
    return this.#segments.at(-1)?.end ?? 0;
  }

  /** The output bytes that there were, whether they are on disk or not. */
  get end(): number {
    return this.position + this.#missingBytes;
  }

  get droppedBytes(): number {
    return this.#segments.reduce((sum, { missingBytes }) => sum + missingBytes, this.#dropped + this.#missingBytes);
  }

  /** What readers may read. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Settles when something has been written after this call, or the log is closed. */
  changed(): Promise<void> {
    return this.#changed.promise;
  }

  /**
   * Settles when it is on disk, or is a gap, and more output may be written: to wait for that keeps a process to the pace
   * of its computer.
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

  /** A reader that it does not run away from. */
  followed(position: number): LogFollower {
    return this.#followers.add(position);
  }

  async close(): Promise<void> {
    await this.#last;
    this.#isClosed = true;
    await this.#closeFile();
    this.#room?.delete(this);
    this.#tell();
  }

  /** The oldest after its beginning; where only that is left, its end. */
  shrink(): Promise<void> | undefined {
    if (this.#segments.length <= leastSegments) return undefined;
    return this.#drop(Math.min(this.#headSegments, this.#segments.length - leastSegments));
  }

  /** Says how many bytes there were to write. */
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

  /** Writes records, and before them what is missing since the last ones. */
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
      // Of several sizes of a terminal, the last one counts.
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
      // A part of it may be there, which is not to be read. What is written next is written over it.
      await file.truncate(segment.size).catch(() => undefined);
      throw error;
    }
    segment.size += bytes.length;
    segment.end = end;
    segment.missingBytes += this.#missingBytes;
    this.#diskBytes += bytes.length;
    this.#tell();
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
    // Meanwhile another process may have needed its room.
    const now = this.#segments.indexOf(segment);
    if (now < 0) return;
    this.#segments.splice(now, 1);
    this.#diskBytes -= segment.size;
    this.#dropped += segment.end - segment.start;
    await unlink(segment.path);
  }

  async #closeFile(): Promise<void> {
    // Some file systems say only now that there is no room. What is missing then is not known.
    await this.#file?.close().catch(() => undefined);
    this.#file = undefined;
  }

  #tell(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
