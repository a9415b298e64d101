import { connectRedis, endRedis, type RedisClient, soon } from './connect.ts';

/** The most turns that wait to be told. Further ones are dropped: their readers check the log anyway. */
const mostPending = 10_000;
const longestMessage = 1024 * 1024;

export interface LineOptions {
  url: string;
  channel: string;
  /** Names this process among those on the channel. */
  self: string;
  /** Called for the notices of all processes, this one included. Without it, this process does not listen. */
  onNotice: ((turnId: string, lastSeq: number) => void) | undefined;
  /** Redis has answered. If this process listens, its own beat has come back. */
  onBeat(): void;
}

/** A working connection to Redis, until it is `lost` or closed. It does not reconnect: its owner opens another. */
export class Line {
  readonly lost: Promise<unknown>;
  readonly #options: LineOptions;
  readonly #lose: (reason: unknown) => void;
  #publisher: RedisClient | undefined;
  #subscriber: RedisClient | undefined;
  #pending = new Map<string, number>();
  #publishing = false;
  #isClosed = false;

  private constructor(options: LineOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.lost = promise;
    this.#lose = resolve;
  }

  static async open(options: LineOptions, signal: AbortSignal): Promise<Line> {
    const line = new Line(options);
    const { url, channel, onNotice } = options;
    try {
      line.#publisher = await connectRedis(url, { onLost: line.#lose, signal });
      if (onNotice !== undefined) {
        const subscriber = await connectRedis(url, { onLost: line.#lose, signal });
        line.#subscriber = subscriber;
        await soon(subscriber, signal, () => subscriber.subscribe(channel, (message) => line.#hear(message)));
      }
    } catch (error) {
      line.close();
      throw error;
    }
    return line;
  }

  /** Sends the notice with the next message: at once, or when the message under way has arrived. */
  tell(turnId: string, lastSeq: number): void {
    if (this.#isClosed || this.#pending.size >= mostPending) return;
    this.#pending.set(turnId, lastSeq);
    if (!this.#publishing) void this.#publish();
  }

  /** Asks Redis for a sign of life. The answer calls `onBeat`. */
  beat(): void {
    const { channel, self, onNotice, onBeat } = this.#options;
    if (this.#publisher === undefined || this.#isClosed) return;
    // A listening process must receive its own beat. For any other, Redis's answer is enough.
    if (onNotice !== undefined) this.#publisher.publish(channel, beatOf(self)).catch(this.#lose);
    else this.#publisher.ping().then(onBeat, this.#lose);
  }

  close(): void {
    this.#isClosed = true;
    this.#pending.clear();
    for (const client of [this.#publisher, this.#subscriber]) if (client !== undefined) endRedis(client);
    this.#lose(new Error('The connection was closed.'));
  }

  async #publish(): Promise<void> {
    this.#publishing = true;
    try {
      // Wait for the end of this iteration of the event loop, so that all turns of one commit share a message.
      await new Promise((resolve) => setImmediate(resolve));
      while (this.#pending.size > 0) {
        const message = Array.from(this.#pending, ([turnId, lastSeq]) => `${turnId} ${lastSeq}`).join('\n');
        this.#pending.clear();
        await this.#publisher?.publish(this.#options.channel, message);
      }
    } catch (error) {
      this.#lose(error);
    } finally {
      this.#publishing = false;
    }
  }

  #hear(message: string): void {
    const { self, onNotice, onBeat } = this.#options;
    if (message === beatOf(self)) onBeat();
    if (message.startsWith(beatMark) || message.length > longestMessage) return;
    for (const line of message.split('\n')) {
      const [turnId = '', seq] = line.split(' ');
      const lastSeq = Number(seq);
      if (Number.isSafeInteger(lastSeq)) onNotice?.(turnId, lastSeq);
    }
  }
}

const beatMark = '=';
const beatOf = (self: string) => `${beatMark}${self}`;
