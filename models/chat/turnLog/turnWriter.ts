import { isDelta, type UiChunk } from './chunks.ts';
import { encodeChunks, WriterFencedError } from './entry.ts';

/** The chunks that a writer has gathered since its last commit, for the committer. */
export interface PendingSegment {
  writer: TurnWriter;
  firstSeq: number;
  lastSeq: number;
  lines: string;
  bytes: number;
}

/** In characters. */
const maxRestLength = 256 * 1_024;

interface FlushWaiter {
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Writes one turn's log under one epoch. `append` only gathers; the group committer takes what has gathered as soon as
 * its last commit is done. Deltas of one part that wait together become one chunk: a slow database makes chunks larger,
 * not later, and a paced stream still has one chunk a token.
 */
export class TurnWriter {
  readonly turnId: string;
  readonly epoch: number;
  /** Aborted when this writer is fenced off or fails, so that its model call ends too. */
  readonly signal: AbortSignal;
  /** The sequence number that the next chunk gets, as far as this process knows. */
  nextSeq: number;

  readonly #abort = new AbortController();
  readonly #wake: (writer: TurnWriter) => void;
  #pending: UiChunk[] = [];
  #inFlight = false;
  #failure: Error | undefined;
  #waiters: FlushWaiter[] = [];

  constructor(options: { turnId: string; epoch: number; nextSeq: number; wake: (writer: TurnWriter) => void }) {
    this.turnId = options.turnId;
    this.epoch = options.epoch;
    this.nextSeq = options.nextSeq;
    this.#wake = options.wake;
    this.signal = this.#abort.signal;
  }

  /** Adds a chunk to the next commit. Throws the writer's failure once it has one. */
  append(chunk: UiChunk): void {
    if (this.#failure !== undefined) throw this.#failure;
    const last = this.#pending.at(-1);
    if (last !== undefined && isDelta(chunk) && isDelta(last) && last.type === chunk.type && last.id === chunk.id) {
      last.delta += chunk.delta;
      return;
    }
    // A delta is copied, since later deltas may be joined to it.
    this.#pending.push(isDelta(chunk) ? { ...chunk } : chunk);
    if (this.#pending.length === 1 && !this.#inFlight) this.#wake(this);
  }

  /** Resolves when everything appended so far is committed; rejects when it never will be. */
  flush(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#pending.length === 0 && !this.#inFlight) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /**
   * Waits for the commit under way, and returns the chunks gathered since, for the transaction that ends the writer's
   * use. If they are too large for it, they are committed too.
   */
  async rest(): Promise<UiChunk[]> {
    const isSmall = encodeChunks(this.#pending).length <= maxRestLength;
    const rest = isSmall ? this.#pending.splice(0) : [];
    await this.flush();
    return rest;
  }

  /** Committer only: takes the gathered chunks, or nothing. */
  take(): PendingSegment | undefined {
    if (this.#pending.length === 0 || this.#failure !== undefined) return undefined;
    const chunks = this.#pending;
    this.#pending = [];
    this.#inFlight = true;
    const lines = encodeChunks(chunks);
    const firstSeq = this.nextSeq;
    return {
      writer: this,
      firstSeq,
      lastSeq: firstSeq + chunks.length - 1,
      lines,
      bytes: Buffer.byteLength(lines),
    };
  }

  /** Committer only: the taken segment is in the log, up to `lastSeq`. */
  committed(lastSeq: number): void {
    this.#inFlight = false;
    this.nextSeq = lastSeq + 1;
    if (this.#pending.length > 0) {
      this.#wake(this);
      return;
    }
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }

  /** Committer only: this writer has failed with `error`. Its uncommitted chunks are lost. */
  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#inFlight = false;
    this.#pending = [];
    this.#abort.abort(error);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }

  /** Ends the writer's use. A later append is an error, not a chunk behind the end. */
  close(): void {
    this.fail(new WriterFencedError(this.turnId));
  }
}
