import type { ProcessInfo } from '../types.ts';
import type { LogPiece } from './joinRecords.ts';
import type { ReadableLog } from './logReader.ts';
import { type LogLimits, LogWriter } from './logWriter.ts';
import { type ProcessMeta, writeMeta } from './processMeta.ts';
import { type Exit, noteRecord, type Size } from './records.ts';

/**
 * A running process. Its output and its end are on the disk before any reader gets them. If the disk is full, the log
 * lacks output, but readers still get the end.
 */
export class LiveProcess {
  readonly folder: string;
  readonly meta: ProcessMeta;
  readonly log: ReadableLog;
  readonly #writer: LogWriter;
  readonly #ended = Promise.withResolvers<void>();
  #exit: Exit | undefined;
  #endedAt: string | null = null;
  #isEnding = false;
  #isOver = false;
  /** The description with the end of the process, until it is on the disk. */
  #unwritten: ProcessMeta | undefined;

  constructor(folder: string, meta: ProcessMeta, limits: LogLimits) {
    this.folder = folder;
    this.meta = meta;
    this.#writer = new LogWriter(folder, limits);
    this.log = {
      segments: () => this.#writer.segments,
      isOver: () => this.#writer.isClosed,
      changed: () => this.#writer.changed(),
      followed: (position) => this.#writer.followed(position),
      end: () => this.#writer.end,
      exit: () => this.#exit ?? { state: 'lost', exitCode: null, signal: null, killedBy: null },
    };
  }

  /** Settles when the process has ended, and everything is on disk. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get hasEnded(): boolean {
    return this.#isEnding;
  }

  /** Whether readers got its end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  info(): ProcessInfo {
    const { position, end, droppedBytes } = this.#writer;
    const exit = this.#exit ?? { state: 'running' };
    const outputBytes = this.#isOver ? end : position;
    return { ...this.meta.info, ...exit, endedAt: this.#endedAt, outputBytes, droppedBytes };
  }

  /** Settles when the records are on the disk, or lost as a gap, and more may come. */
  append(records: readonly LogPiece[]): Promise<void> {
    return this.#writer.append(records);
  }

  async resized(size: Size): Promise<void> {
    await this.#writer.append([noteRecord('resize', 0, size)]);
    this.meta.info = { ...this.meta.info, pty: size };
  }

  /** Records the end of the process, once, and then tells its readers. */
  async end(exit: Exit): Promise<void> {
    if (this.#isEnding) return this.ended;
    this.#isEnding = true;
    // Wait for all earlier output. The exit record comes last.
    await this.#writer.append([]);
    this.#endedAt = new Date().toISOString();
    this.#unwritten = { ...this.meta, info: { ...this.info(), ...exit, outputBytes: this.#writer.end } };
    await this.writeEnd();
    this.#exit = exit;
    await this.#writer.append([noteRecord('exit', 0, exit)]);
    await this.#finish();
  }

  /** Tries to write the end of the process. Returns whether it is on the disk. */
  async writeEnd(): Promise<boolean> {
    if (this.#unwritten === undefined) return true;
    try {
      await writeMeta(this.folder, this.#unwritten);
      this.#unwritten = undefined;
      return true;
    } catch {
      return false;
    }
  }

  /** The process was never started. */
  async abandon(): Promise<void> {
    this.#isEnding = true;
    await this.#finish();
  }

  async #finish(): Promise<void> {
    await this.#writer.close();
    this.#isOver = true;
    this.#ended.resolve();
  }
}
