import { DomainError } from '../../base/errors.ts';

/** The limits of one WebSocket, and of all WebSockets of one user. */
export interface ConnectionLimits {
  /** Open connections of one user in this process. */
  perUser: number;
  /** A larger message closes the connection with 1009. */
  maxMessageBytes: number;
  /** A client with a larger backlog is cut off. */
  maxBacklogBytes: number;
  /** Messages from the client: the sustained rate, and the burst. */
  messagesPerSecond: number;
  messagesAtOnce: number;
  /** A peer that has not answered a ping when the next one is due counts as dead. */
  pingIntervalMs: number;
  /** How long a peer may take to answer a close frame before it is cut. */
  closeTimeoutMs: number;
  /** With the second for which a session check is cached, a removed member stays connected for less than 5 s. */
  authorizationIntervalMs: number;
}

export const connectionLimits: ConnectionLimits = {
  perUser: 50,
  maxMessageBytes: 1024 * 1024,
  maxBacklogBytes: 4 * 1024 * 1024,
  messagesPerSecond: 200,
  messagesAtOnce: 1_000,
  pingIntervalMs: 30_000,
  closeTimeoutMs: 5_000,
  authorizationIntervalMs: 3_000,
};

/** Counts each user's open connections. */
export class ConnectionCounter {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one more until the returned function is called. Throws 429 `TOO_MANY_CONNECTIONS` at the limit. */
  enter(userId: string): () => void {
    const open = this.#open.get(userId) ?? 0;
    if (open >= this.#most) {
      const message = `You have ${this.#most} open connections, the maximum. Close one first.`;
      throw new DomainError('rateLimited', 'TOO_MANY_CONNECTIONS', message, { retryAfterSeconds: 1 });
    }
    this.#open.set(userId, open + 1);
    return () => {
      const left = (this.#open.get(userId) ?? 1) - 1;
      if (left > 0) this.#open.set(userId, left);
      else this.#open.delete(userId);
    };
  }
}

/** A token bucket: lets `atOnce` through, then `perSecond`. */
export class Throttle {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #left: number;
  #at = performance.now();

  constructor(perSecond: number, atOnce: number) {
    this.#perSecond = perSecond;
    this.#atOnce = atOnce;
    this.#left = atOnce;
  }

  take(): boolean {
    const now = performance.now();
    this.#left = Math.min(this.#atOnce, this.#left + ((now - this.#at) / 1_000) * this.#perSecond);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
