import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../telemetry/logger.ts';
import { Line } from './line.ts';

export interface NoticeListener {
  onNotice(turnId: string, lastSeq: number): void;
  /** `areHeard` has changed. */
  onChange(): void;
}

export interface RedisNoticesOptions {
  url: string;
  installation: string;
  logger: Logger;
  /** Whether this process has readers and so listens. A worker only tells. */
  listens: boolean;
}

const beatMs = 500;
/**
 * Unanswered beats after which notices are no longer relied on, and after which the connection is replaced. Beats are
 * counted instead of time: if this process itself was blocked, the answers still wait behind the timer.
 */
const quietBeats = 3;
const lostBeats = 10;
const firstRetryMs = 100;
const longestRetryMs = 5_000;

/** The channel of an installation. Several installations may share one Redis. */
export function turnsChannel(installation: string): string {
  return `atrium:${installation}:turns`;
}

/**
 * Notices over Redis Pub/Sub: ids of turns and numbers of chunks, never content. Redis stores nothing. A message may be
 * lost, late or false. Each process listens for its own beats, and clears `areHeard` when they no longer come.
 */
export class RedisNotices {
  readonly #options: RedisNoticesOptions;
  readonly #stopping = new AbortController();
  readonly #self = randomUUID();
  readonly #done: Promise<void>;
  #listener: NoticeListener | undefined;
  #line: Line | undefined;
  #unanswered = 0;
  #areHeard = false;
  #retryMs = firstRetryMs;
  #failure: unknown = new Error('Redis has not been reached yet.');

  constructor(options: RedisNoticesOptions) {
    this.#options = options;
    this.#done = this.#run();
  }

  /** Whether the latest beats were answered. */
  get areHeard(): boolean {
    return this.#areHeard;
  }

  listen(listener: NoticeListener): void {
    this.#listener = listener;
  }

  /** Tells all processes soon, and at most once. Neither waits nor fails. */
  tell(turnId: string, lastSeq: number): void {
    this.#line?.tell(turnId, lastSeq);
  }

  /** For readiness. Rejects with the reason if Redis does not work. */
  async check(): Promise<void> {
    if (!this.#areHeard) throw this.#failure;
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#line?.close();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#keepLine();
      } catch (error) {
        this.#failure = error;
      }
      this.#setHeard(false);
      await delay(this.#retryMs * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined);
      this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs);
    }
  }

  /** Opens a connection, and beats on it until it is lost. */
  async #keepLine(): Promise<void> {
    const { url, installation, listens } = this.#options;
    const onBeat = () => {
      this.#unanswered = 0;
      this.#retryMs = firstRetryMs;
      this.#setHeard(true);
    };
    const onNotice = listens
      ? (turnId: string, lastSeq: number) => this.#listener?.onNotice(turnId, lastSeq)
      : undefined;
    const channel = turnsChannel(installation);
    const line = await Line.open({ url, channel, self: this.#self, onNotice, onBeat }, this.#stopping.signal);
    this.#line = line;
    this.#unanswered = 0;
    const timer = setInterval(() => this.#lookAfter(line), beatMs);
    line.beat();
    if (this.#stopping.signal.aborted) line.close();
    try {
      this.#failure = await line.lost;
    } finally {
      clearInterval(timer);
      line.close();
      this.#line = undefined;
    }
  }

  #lookAfter(line: Line): void {
    this.#unanswered++;
    if (this.#unanswered > quietBeats) {
      this.#failure = new Error(`Redis did not answer ${this.#unanswered - 1} times.`);
      this.#setHeard(false);
    }
    if (this.#unanswered > lostBeats) line.close();
    else line.beat();
  }

  #setHeard(areHeard: boolean): void {
    if (areHeard === this.#areHeard) return;
    this.#areHeard = areHeard;
    if (this.#stopping.signal.aborted) return;
    const { logger } = this.#options;
    if (areHeard) logger.info('Commits are told over Redis.');
    else
      logger.warn({ err: this.#failure }, 'Commits are not told over Redis any more: the database is asked for them.');
    this.#listener?.onChange();
  }
}
