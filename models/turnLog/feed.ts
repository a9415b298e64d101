import type { RowDataPacket } from 'mysql2/promise';
import type { Logger } from '../../telemetry/logger.ts';
import type { Database } from '../database.ts';
import type { CommittedSegment } from './entry.ts';
import type { SegmentRow, TurnLog } from './turnLog.ts';

/** Where a turn's log stands: what a reader needs to know whether it has all of it. */
interface LogState {
  id: string;
  nextSeq: number;
  terminal: number;
  status: string;
}

export interface TurnReader {
  /** Committed chunks, in order and without a gap: `lines` are those numbered from `firstSeq` on. */
  onChunks(firstSeq: number, lines: string[]): void;
  /**
   * Resolves when the reader has room for more of what is read from the log; commits of the moment do not wait for it.
   */
  ready?(): Promise<void>;
  /** The reader has everything that this part of the turn will ever say. */
  onEnd(): void;
  /** The log could not be read; the reader may come back with its last position. */
  onError(error: unknown): void;
}

interface Subscription {
  turnId: string;
  /** The last sequence number handed to the reader. */
  position: number;
  reader: TurnReader;
  reading: boolean;
  /** A commit arrived while older chunks were being read. */
  behind: boolean;
  closed: boolean;
}

export interface FeedOptions {
  database: Database;
  logger: Logger;
  /** Whether other processes write turns: then their commits are looked for at `tailIntervalMs`. */
  remoteWriters: boolean;
  tailIntervalMs?: number;
  blindMs?: number;
}

/** How often every subscription is compared with the database even where all writers are in this process. */
const safetyIntervalMs = 1_000;
const remoteTailIntervalMs = 10;
/** After so long without a look at the log readers are sent away: they come back, perhaps to a process that sees it. */
const longestBlindMs = 10_000;
/** What is handed over at once of a log that is read: a long one goes out at its reader's pace. */
const segmentsAtOnce = 200;
const charactersAtOnce = 128 * 1024;

/**
 * Brings committed chunks to readers. Commits of this process arrive by {@link publish}; those of other processes are
 * found by one query for all subscribed turns. A reader that has missed something reads it from the log, so what it
 * gets is the log's own order in any case.
 */
export class TurnFeed {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #intervalMs: number;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #log: TurnLog | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #blindMs: number;
  #tailing = false;
  #lookedAtMs = 0;

  constructor(options: FeedOptions) {
    this.#database = options.database;
    this.#logger = options.logger;
    this.#blindMs = options.blindMs ?? longestBlindMs;
    this.#intervalMs = options.remoteWriters ? (options.tailIntervalMs ?? remoteTailIntervalMs) : safetyIntervalMs;
  }

  /** The log that missed chunks are read from. Feed and log know each other, so one of them is told later. */
  attach(log: TurnLog): void {
    this.#log = log;
  }

  /** A commit of this process. */
  readonly publish = (segment: CommittedSegment): void => {
    const subscriptions = this.#subscriptions.get(segment.turnId);
    if (subscriptions === undefined) return;
    let lines: string[] | undefined;
    for (const subscription of subscriptions) {
      if (subscription.reading) {
        subscription.behind = true;
      } else if (subscription.position === segment.firstSeq - 1) {
        lines ??= segment.lines.split('\n');
        this.#deliver(subscription, segment.firstSeq, lines);
        if (segment.rests) this.#end(subscription);
      } else if (subscription.position < segment.lastSeq) {
        void this.#catchUp(subscription);
      }
    }
  };

  /**
   * Reads the turn's log from after `afterSeq`, then on as it grows. Returns how to leave. A reader that has just
   * written the log's beginning itself is `caughtUp`: nothing needs to be looked up for it.
   */
  subscribe(turnId: string, afterSeq: number, reader: TurnReader, options: { caughtUp?: boolean } = {}): () => void {
    const subscription = { turnId, position: afterSeq, reader, reading: false, behind: false, closed: false };
    const subscriptions = this.#subscriptions.get(turnId) ?? new Set();
    this.#subscriptions.set(turnId, subscriptions.add(subscription));
    if (this.#timer === undefined) {
      this.#lookedAtMs = performance.now();
      this.#timer = setInterval(() => void this.#tail(), this.#intervalMs);
    }
    if (options.caughtUp !== true) void this.#catchUp(subscription);
    return () => this.#leave(subscription);
  }

  /** Whether anybody in this process is reading the turn. */
  hasReaders(turnId: string): boolean {
    return this.#subscriptions.has(turnId);
  }

  /** Breaks all readings off: their clients resume elsewhere. */
  close(): void {
    this.#breakOff(new Error('The process is stopping.'));
  }

  #breakOff(reason: unknown): void {
    for (const subscriptions of this.#subscriptions.values()) {
      for (const subscription of subscriptions) {
        this.#leave(subscription);
        subscription.reader.onError(reason);
      }
    }
  }

  /** Reads from the log until the subscription stands where the log does. */
  async #catchUp(subscription: Subscription): Promise<void> {
    if (subscription.reading || subscription.closed || this.#log === undefined) return;
    subscription.reading = true;
    try {
      do {
        subscription.behind = false;
        // The state is read before the chunks: when it says the end, all the chunks are there.
        const [state] = await this.#readStates([subscription.turnId]);
        await this.#readThrough(subscription, this.#log);
        if (state === undefined || (isAtRest(state) && subscription.position >= state.nextSeq - 1)) {
          this.#end(subscription);
        }
      } while (subscription.behind && !subscription.closed);
    } catch (error) {
      subscription.closed = true;
      this.#leave(subscription);
      subscription.reader.onError(error);
    } finally {
      subscription.reading = false;
    }
  }

  async #readThrough(subscription: Subscription, log: TurnLog): Promise<void> {
    for (;;) {
      const segments = await log.read(subscription.turnId, subscription.position, segmentsAtOnce);
      if (segments.length === 0) return;
      for (const lines of portionsOf(segments, subscription.position)) {
        if (subscription.closed) return;
        this.#deliver(subscription, subscription.position + 1, lines);
        await subscription.reader.ready?.();
      }
    }
  }

  /** One query finds what other processes have written for all the turns that are read here. */
  async #tail(): Promise<void> {
    if (this.#tailing) return;
    this.#tailing = true;
    try {
      const states = await this.#readStates([...this.#subscriptions.keys()]);
      this.#lookedAtMs = performance.now();
      for (const state of states) {
        for (const subscription of this.#subscriptions.get(state.id) ?? []) {
          if (subscription.position < state.nextSeq - 1 || isAtRest(state)) void this.#catchUp(subscription);
        }
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'The turn log could not be looked at; trying again.');
      if (performance.now() - this.#lookedAtMs > this.#blindMs) this.#breakOff(error);
    } finally {
      this.#tailing = false;
    }
  }

  async #readStates(turnIds: string[]): Promise<LogState[]> {
    if (turnIds.length === 0) return [];
    const sql = 'SELECT id, next_seq AS nextSeq, terminal, status FROM turns WHERE id IN (?)';
    const [rows] = await this.#database.pool.query<RowDataPacket[]>(sql, [turnIds]);
    return rows as unknown as LogState[];
  }

  #deliver(subscription: Subscription, firstSeq: number, lines: string[]): void {
    if (subscription.closed) return;
    subscription.position = firstSeq + lines.length - 1;
    subscription.reader.onChunks(firstSeq, lines);
  }

  #end(subscription: Subscription): void {
    if (subscription.closed) return;
    subscription.closed = true;
    this.#leave(subscription);
    subscription.reader.onEnd();
  }

  #leave(subscription: Subscription): void {
    subscription.closed = true;
    const subscriptions = this.#subscriptions.get(subscription.turnId);
    subscriptions?.delete(subscription);
    if (subscriptions?.size === 0) this.#subscriptions.delete(subscription.turnId);
    if (this.#subscriptions.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}

/** A turn that waits for the client's tool results says no more in this response than one that has ended. */
function isAtRest(state: LogState): boolean {
  return state.terminal === 1 || state.status === 'waiting';
}

/** The chunks after `position`, in portions. A chunk is never divided, however large it is. */
function* portionsOf(segments: SegmentRow[], position: number): Generator<string[]> {
  let portion: string[] = [];
  let characters = 0;
  for (const { firstSeq, lines } of segments) {
    for (const line of lines.split('\n').slice(Math.max(0, position + 1 - firstSeq))) {
      portion.push(line);
      characters += line.length;
      if (characters < charactersAtOnce) continue;
      yield portion;
      portion = [];
      characters = 0;
    }
  }
  if (portion.length > 0) yield portion;
}
