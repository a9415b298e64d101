import type { Logger } from '../../../telemetry/logger.ts';
import type { Database } from '../../database/database.ts';
import type { CommittedSegment } from './entry.ts';
import { LookSchedule } from './lookSchedule.ts';
import { type CommitNotices, NoticeTrust } from './notices.ts';
import { linesAfter, portionsOf, readState, readTails, type Tail } from './tails.ts';
import type { TurnLog } from './turnLog.ts';

export interface TurnReader {
  /** Committed chunks, in order and without a gap. `lines` are the chunks from `firstSeq` on. */
  onChunks(firstSeq: number, lines: string[]): void;
  /** Resolves when the reader has room for more chunks from the log. Live commits do not wait for it. */
  ready?(): Promise<void>;
  /** The reader has everything of this part of the turn. */
  onEnd(): void;
  /** The log could not be read. The reader may come back with its last position. */
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
   * Whether other processes write turns. Their commits are polled for every few milliseconds, unless `notices` report
   * them.
   */
  remoteWriters: boolean;
  notices?: CommitNotices | undefined;
  blindMs?: number;
}

/** How often a log with readers is checked even if all its commits are reported. */
const safetyIntervalMs = 1_000;
const remoteTailIntervalMs = 20;
/** Readers are disconnected if the log could not be read for this long: they may reconnect to a process that can. */
const longestBlindMs = 10_000;
/** The most logs that one statement checks. */
const turnsAtOnce = 500;
/** How many segments are read at a time for a reader that catches up. */
const segmentsAtOnce = 200;

/**
 * Delivers committed chunks to readers. Commits of this process arrive by {@link publish}. Commits of other processes
 * are found by checking the logs of all subscribed turns in one statement, at an interval or when a notice reports one.
 * A reader that has missed something reads it from the log, so every reader gets the log's own order.
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

  /** The log from which missed chunks are read. Feed and log refer to each other, so the log is set later. */
  attach(log: TurnLog): void {
    this.#log = log;
  }

  /** Delivers a commit of this process. */
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
   * Reads the turn's log from after `afterSeq`, and then as it grows. Returns a function that ends the subscription.
   * Set `caughtUp` for a reader that has just written the log's beginning itself: the log is not read for it now.
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

  /** Whether this process has a reader of the turn. */
  hasReaders(turnId: string): boolean {
    return this.#subscriptions.has(turnId);
  }

  /** Ends all subscriptions. Their clients resume with another process. */
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

  /** Reads from the log until the subscription has caught up. */
  async #catchUp(subscription: Subscription): Promise<void> {
    if (subscription.reading || subscription.closed || this.#log === undefined) return;
    subscription.reading = true;
    try {
      do {
        subscription.behind = false;
        // The state is read before the chunks: if it says that the turn rests, all its chunks are there.
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

  /** Another process reports that a log has grown. The report may be wrong, so the log is checked. */
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

  /** The turns with readers. A turn that this process writes reports its own commits, so it is checked less often. */
  #turnsToLookAt(): Iterable<string> {
    const now = performance.now();
    if (now - this.#lookedAtOwnMs < safetyIntervalMs) {
      return [...this.#subscriptions.keys()].filter((turnId) => this.#log?.isWritten(turnId) !== true);
    }
    this.#lookedAtOwnMs = now;
    return this.#subscriptions.keys();
  }

  /** The readers that are not catching up now. */
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
      // Only readers that subscribed before the log was read: for later ones, what was read may be outdated.
      for (const subscription of live) this.#bring(subscription, tail, cut);
    }
  }

  /** Delivers the tail to a reader. */
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
