import type { ProcessInfo } from '../types.ts';
import type { LogPiece } from './joinRecords.ts';
import type { ReadableLog } from './logReader.ts';
import { type LogLimits, LogWriter } from './logWriter.ts';
import { type ProcessMeta, writeMeta } from './processMeta.ts';
import { type Exit, noteRecord, type Size } from './records.ts';

/**
 * A process that runs: what it says and how it ends is on disk before anybody is told. Where its disk is full, what it
 * said is missing there, and its end is told all the same.
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
  /** Its end, until that is on disk. */
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

  /** Settles when it is over, and all of that is on disk. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get hasEnded(): boolean {
    return this.#isEnding;
  }

  /** Whether its end has been told. */
  get isOver(): boolean {
    return this.#isOver;
  }

  info(): ProcessInfo {
    const { position, end, droppedBytes } = this.#writer;
    const exit = this.#exit ?? { state: 'running' };
    const outputBytes = this.#isOver ? end : position;
    return { ...this.meta.info, ...exit, endedAt: this.#endedAt, outputBytes, droppedBytes };
  }

  /** Settles when it is on disk, or is missing there for good, and more may come. */
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
    // After all that it has said, and before the record that tells its readers.
    await this.#writer.append([]);
    this.#endedAt = new Date().toISOString();
    this.#unwritten = { ...this.meta, info: { ...this.info(), ...exit, outputBytes: this.#writer.end } };
    await this.writeEnd();
    this.#exit = exit;
    await this.#writer.append([noteRecord('exit', 0, exit)]);
    await this.#finish();
  }

  /** Whether its end is on disk, for which this tries once more. */
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

  /** It was never started. */
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
