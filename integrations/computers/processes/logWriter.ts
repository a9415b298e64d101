import { type FileHandle, open, unlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Followers } from './followers.ts';
import { joinRecords, type LogPiece } from './joinRecords.ts';
import type { LogFollower } from './logReader.ts';
import type { GrowingLog, LogRoom } from './logRoom.ts';
import type { LogPace } from './pace.ts';
import { encodeRecord, isOutput, recordHeaderBytes } from './records.ts';
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

/**
 * Writes a process’s log. What it has written is on disk before anybody is told, and takes no more room than it may: a
 * log that is longer keeps its beginning and its end.
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
  readonly #followers = new Followers(() => this.#position);
  #diskBytes = 0;
  #segments: (Segment & { end: number })[] = [];
  #file: FileHandle | undefined;
  #position = 0;
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

  get droppedBytes(): number {
    return this.#dropped;
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
   * Settles when it is on disk, and more output may be written: to wait for that keeps a process to the pace of its
   * computer. Throws where it cannot be written.
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
    await this.#file?.close();
    this.#file = undefined;
    this.#room?.delete(this);
    this.#tell();
  }

  /** The oldest after its beginning; where only that is left, its end. */
  shrink(): Promise<void> | undefined {
    if (this.#segments.length <= leastSegments) return undefined;
    return this.#drop(Math.min(this.#headSegments, this.#segments.length - leastSegments));
  }

  /** Says how many bytes it has written. */
  async #write(records: readonly LogPiece[]): Promise<number> {
    if (this.#isClosed) throw new Error('The log is closed.');
    let batch: Buffer[] = [];
    let length = 0;
    let written = 0;
    const flush = async () => {
      if (length > 0) await this.#flush(batch, length);
      written += length;
      batch = [];
      length = 0;
    };
    for (const record of joinRecords(records)) {
      if (length + recordHeaderBytes + record.payload.length > this.#batchBytes) await flush();
      const bytes = encodeRecord({ ...record, position: this.#position });
      if (isOutput(record.kind)) this.#position += record.payload.length;
      batch.push(bytes);
      length += bytes.length;
    }
    await flush();
    return written;
  }

  async #flush(batch: Buffer[], length: number): Promise<void> {
    await this.#room?.make(length);
    const segment = await this.#segmentFor(length);
    // At its place, so that what a failed write has left is written over.
    await writeAll(this.#file as FileHandle, batch, segment.size);
    segment.size += length;
    this.#diskBytes += length;
    segment.end = this.#position;
    this.#tell();
  }

  async #segmentFor(length: number): Promise<Segment & { end: number }> {
    const current = this.#segments.at(-1);
    if (current !== undefined && this.#file !== undefined && current.size + length <= this.#segmentBytes)
      return current;
    await this.#file?.close();
    this.#file = undefined;
    if (this.#segments.length >= this.#maxSegments) await this.#drop(this.#headSegments);
    const start = current?.end ?? 0;
    const index = (current?.index ?? -1) + 1;
    const path = segmentPath(this.#folder, index, start);
    this.#file = await open(path, 'w', 0o600);
    const segment = { path, index, start, end: start, size: 0 };
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

  #tell(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

async function writeAll(file: FileHandle, batch: Buffer[], at: number): Promise<void> {
  const bytes = batch.length === 1 ? (batch[0] as Buffer) : Buffer.concat(batch);
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
