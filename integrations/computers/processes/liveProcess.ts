import type { ProcessInfo } from '../types.ts';
import type { LogPiece } from './joinRecords.ts';
import type { ReadableLog } from './logReader.ts';
import { type LogLimits, LogWriter } from './logWriter.ts';
import { type ProcessMeta, writeMeta } from './processMeta.ts';
import { type Exit, noteRecord, type Size } from './records.ts';

/** A process that runs: what it says and how it ends is on disk before anybody is told. */
export class LiveProcess {
  readonly folder: string;
  readonly meta: ProcessMeta;
  readonly log: ReadableLog;
  readonly #writer: LogWriter;
  readonly #ended = Promise.withResolvers<void>();
  #exit: Exit | undefined;
  #endedAt: string | null = null;
  #isEnding = false;

  constructor(folder: string, meta: ProcessMeta, limits: LogLimits) {
    this.folder = folder;
    this.meta = meta;
    this.#writer = new LogWriter(folder, limits);
    this.log = {
      segments: () => this.#writer.segments,
      isOver: () => this.#writer.isClosed,
      changed: () => this.#writer.changed(),
      followed: (position) => this.#writer.followed(position),
      exit: () => this.#exit ?? { state: 'lost', exitCode: null, signal: null, killedBy: null },
    };
  }

  /** Settles when it is over, and all of that is on disk. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get hasEnded(): boolean {
    return this.#isEnding;
  }

  info(): ProcessInfo {
    const { position, droppedBytes } = this.#writer;
    const end = this.#exit ?? { state: 'running' };
    return { ...this.meta.info, ...end, endedAt: this.#endedAt, outputBytes: position, droppedBytes };
  }

  /** Settles when it is on disk, and more may come. */
  append(records: readonly LogPiece[]): Promise<void> {
    return this.#writer.append(records);
  }

  async resized(size: Size): Promise<void> {
    await this.#writer.append([noteRecord('resize', 0, size)]);
    this.meta.info = { ...this.meta.info, pty: size };
  }

  /** Writes its end down, once. Whoever follows it hears of it then. */
  async end(exit: Exit): Promise<void> {
    if (this.#isEnding) return this.ended;
    this.#isEnding = true;
    try {
      // After all that it has said, and before the record that tells its readers.
      await this.#writer.append([]);
      this.#endedAt = new Date().toISOString();
      const info = { ...this.info(), ...exit };
      await writeMeta(this.folder, { ...this.meta, info });
      this.#exit = exit;
      await this.#writer.append([noteRecord('exit', 0, exit)]);
    } finally {
      // It is told even where it could not be written, for want of room.
      this.#exit ??= exit;
      await this.#finish();
    }
  }

  /** It was never started. */
  async abandon(): Promise<void> {
    this.#isEnding = true;
    await this.#finish();
  }

  async #finish(): Promise<void> {
    await this.#writer.close();
    this.#ended.resolve();
  }
}
