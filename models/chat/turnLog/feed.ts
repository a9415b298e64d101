import type { Logger } from '../../../telemetry/logger.ts';
import type { Database } from '../../database/database.ts';
import type { CommittedSegment } from './entry.ts';
import { LookSchedule } from './lookSchedule.ts';
import { type CommitNotices, NoticeTrust } from './notices.ts';
import { linesAfter, portionsOf, readState, readTails, type Tail } from './tails.ts';
import type { TurnLog } from './turnLog.ts';

export interface TurnReader {
  /** Committed chunks, in order and without a gap: `lines` are those numbered from `firstSeq` on. */
  onChunks(firstSeq: number, lines: string[]): void;
  /**
   * Resolves when the reader has room for more of what is read from the log; commits of the moment do not wait for it.
   */
  ready?(): Promise<void>;
  /** The reader has everything of this part of the turn. */
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
  /**
   * Whether other processes write turns: then their commits are looked for every few milliseconds, unless `notices`
   * tell of them.
   */
  remoteWriters: boolean;
  notices?: CommitNotices | undefined;
  blindMs?: number;
}

/** How often a log that is read is looked at even where all its commits are told. */
const safetyIntervalMs = 1_000;
const remoteTailIntervalMs = 20;
/**
 * After this long without reading the log, readers are disconnected: they come back, perhaps to a process that can read
 * it.
 */
const longestBlindMs = 10_000;
/** One statement looks at so many logs at most. */
const turnsAtOnce = 500;
/** What is read at once of a log that somebody catches up with. */
const segmentsAtOnce = 200;

/**
 * Brings committed chunks to readers. Commits of this process arrive by {@link publish}; those of other processes are
 * found by looking at the logs of all subscribed turns in one statement: at an interval, or when notices say that there
 * is something. A reader that has missed something reads it from the log, so what it gets is the log's own order in any
 * case.
 */
export class TurnFeed {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #notices: CommitNotices | undefined;
  readonly #trust = new NoticeTrust();
  readonly #schedule: LookSchedule;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  #log: TurnLog | undefined;
  readonly #blindMs: number;
  #failing = false;
  #lookedAtMs = 0;
  #lookedAtOwnMs = 0;

  constructor(options: FeedOptions) {
    this.#database = options.database;
    this.#logger = options.logger;
    this.#notices = options.notices;
    this.#blindMs = options.blindMs ?? longestBlindMs;
    this.#schedule = new LookSchedule({
      intervalMs: () => (options.remoteWriters && !this.#hearsNotices() ? remoteTailIntervalMs : safetyIntervalMs),
      look: (turns) => this.#look(turns),
    });
    this.#notices?.listen({
      onNotice: (turnId, lastSeq) => this.#onNotice(turnId, lastSeq),
      onChange: () => this.#schedule.restart(),
    });
  }

  /** The log that missed chunks are read from. Feed and log refer to each other, so one is set later. */
  attach(log: TurnLog): void {
    this.#log = log;
  }

  /** A commit of this process. */
  readonly publish = (segment: CommittedSegment): void => {
    this.#notices?.tell(segment.turnId, segment.lastSeq);
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
        this.#schedule.lookAt(segment.turnId);
      }
    }
  };

  /**
   * * Reads the turn's log from after `afterSeq`, then on as it grows. Returns how to leave. A reader that has just
   * written the log's beginning itself is `caughtUp`: nothing needs to be looked up for it.
   */
  subscribe(turnId: string, afterSeq: number, reader: TurnReader, options: { caughtUp?: boolean } = {}): () => void {
    const subscription = { turnId, position: afterSeq, reader, reading: false, behind: false, closed: false };
    if (this.#subscriptions.size === 0) this.#lookedAtMs = performance.now();
    const subscriptions = this.#subscriptions.get(turnId) ?? new Set();
    this.#subscriptions.set(turnId, subscriptions.add(subscription));
    this.#schedule.start();
    if (options.caughtUp !== true) void this.#catchUp(subscription);
    return () => this.#leave(subscription);
  }

  /** Whether anybody in this process is reading the turn. */
  hasReaders(turnId: string): boolean {
    return this.#subscriptions.has(turnId);
  }

  /** Ends all subscriptions: their clients resume elsewhere. */
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
        const state = await readState(this.#database, subscription.turnId);
        await this.#readThrough(subscription, this.#log);
        if (state === undefined || (state.rests && subscription.position >= state.nextSeq - 1)) {
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

  /** Another process says that a log has grown. It may be wrong: the log is asked. */
  #onNotice(turnId: string, lastSeq: number): void {
    const subscriptions = this.#subscriptions.get(turnId);
    if (subscriptions === undefined) return;
    this.#trust.heard(turnId, lastSeq);
    for (const subscription of subscriptions) {
      if (subscription.position >= lastSeq) continue;
      if (subscription.reading) subscription.behind = true;
      else this.#schedule.lookAt(turnId);
    }
  }

  #hearsNotices(): boolean {
    return this.#notices?.areHeard === true && this.#trust.isGiven;
  }

  async #look(turns: ReadonlySet<string> | 'all'): Promise<void> {
    const untold = turns === 'all' && this.#hearsNotices();
    if (untold) this.#trust.beginLook();
    const live = this.#liveReadersOf(turns === 'all' ? this.#turnsToLookAt() : turns);
    try {
      for (let from = 0; from < live.length; from += turnsAtOnce) {
        await this.#lookAt(live.slice(from, from + turnsAtOnce), untold);
      }
      this.#failing = false;
      this.#lookedAtMs = performance.now();
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error }, 'The turn log could not be looked at; trying again.');
      this.#failing = true;
      if (performance.now() - this.#lookedAtMs > this.#blindMs) this.#breakOff(error);
      throw error;
    }
  }

  /** All that are read. Those that this process writes tell their readers, so they are looked at less often. */
  #turnsToLookAt(): Iterable<string> {
    const now = performance.now();
    if (now - this.#lookedAtOwnMs < safetyIntervalMs) {
      return [...this.#subscriptions.keys()].filter((turnId) => this.#log?.isWritten(turnId) !== true);
    }
    this.#lookedAtOwnMs = now;
    return this.#subscriptions.keys();
  }

  /** Those who are not just being brought up to date. */
  #liveReadersOf(turns: Iterable<string>): [turnId: string, live: Subscription[]][] {
    return Array.from(turns, (turnId): [string, Subscription[]] => {
      const subscriptions = [...(this.#subscriptions.get(turnId) ?? [])];
      return [turnId, subscriptions.filter(({ reading }) => !reading)];
    }).filter(([, live]) => live.length > 0);
  }

  async #lookAt(readers: [turnId: string, live: Subscription[]][], untold: boolean): Promise<void> {
    const positions = new Map(
      readers.map(([turnId, live]) => [turnId, Math.min(...live.map(({ position }) => position))]),
    );
    const { turns, cut } = await readTails(this.#database, positions);
    for (const [turnId, live] of readers) {
      const tail = turns.get(turnId);
      if (untold && tail !== undefined && (positions.get(turnId) ?? 0) < tail.state.nextSeq - 1) {
        this.#trust.found(turnId, tail.state.nextSeq - 1);
      }
      // Only those who were there before the log was read: what it said then may be over for who has come since.
      for (const subscription of live) this.#bring(subscription, tail, cut);
    }
  }

  /** Brings a reader as far as the tail goes. */
  #bring(subscription: Subscription, tail: Tail | undefined, cut: boolean): void {
    if (subscription.closed || subscription.reading) return;
    if (tail === undefined) {
      this.#end(subscription);
      return;
    }
    const lines = linesAfter(tail.segments, subscription.position);
    if (lines.length > 0) this.#deliver(subscription, subscription.position + 1, lines);
    const missing = tail.state.nextSeq - 1 - subscription.position;
    if (missing > 0 && cut) this.#schedule.lookAt(subscription.turnId);
    else if (missing > 0 || (missing < 0 && tail.state.rests)) void this.#catchUp(subscription);
    else if (missing === 0 && tail.state.rests) this.#end(subscription);
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
    if (subscriptions?.size === 0) {
      this.#subscriptions.delete(subscription.turnId);
      this.#trust.forget(subscription.turnId);
    }
    if (this.#subscriptions.size === 0) this.#schedule.stop();
  }
}
