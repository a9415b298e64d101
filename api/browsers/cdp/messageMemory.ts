/** Room for one message until it has left this process. */
export interface MessageRoom extends Disposable {
  /** Gives back the room that the message does not need. */
  shrinkTo(bytes: number): void;
}

export interface MessageMemoryOptions {
  /** The limits for all messages together, and for the messages of one owner. */
  mostBytes: number;
  perOwnerBytes: number;
  /** While others wait, a message that has had its room for longer than this loses it. */
  slowMs: number;
}

interface Place {
  owner: string;
  bytes: number;
  since: number;
  /** Called when the message has had its room for too long. */
  onSlow: () => void;
}

interface Waiting extends Place {
  give(room: MessageRoom): void;
}

/**
 * The memory of this process for large messages that pass through it. A message gets room for the largest size at once,
 * so it can always finish, and messages never wait for each other in a circle.
 */
export class MessageMemory {
  readonly #options: MessageMemoryOptions;
  readonly #places = new Set<Place>();
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MessageMemoryOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return sum(this.#places);
  }

  /** Gives room in the order of the requests, but skips owners at their limit. The signal ends the wait. */
  take(owner: string, bytes: number, { signal, onSlow }: { signal: AbortSignal; onSlow: () => void }) {
    return new Promise<MessageRoom | undefined>((resolve) => {
      if (signal.aborted) return resolve(undefined);
      const leave = () => {
        this.#waiting.delete(waiting);
        resolve(undefined);
        this.#serve();
      };
      const give = (room: MessageRoom) => {
        signal.removeEventListener('abort', leave);
        resolve(room);
      };
      const waiting: Waiting = { owner, bytes, since: Date.now(), onSlow, give };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.add(waiting);
      this.#serve();
    });
  }

  #serve(): void {
    const { mostBytes, perOwnerBytes } = this.#options;
    for (const waiting of this.#waiting) {
      const { owner, bytes, onSlow, give } = waiting;
      const own = [...this.#places].filter((place) => place.owner === owner);
      if (own.length > 0 && sum(own) + bytes > perOwnerBytes) continue;
      // Later requests do not overtake this one, or a large message would never get room.
      if (this.#places.size > 0 && this.usedBytes + bytes > mostBytes) break;
      this.#waiting.delete(waiting);
      const place: Place = { owner, bytes, since: Date.now(), onSlow };
      this.#places.add(place);
      give(this.#roomOf(place));
    }
    if (this.#waiting.size > 0) this.#timer ??= setInterval(() => this.#endSlowest(), this.#options.slowMs / 4).unref();
    else {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Ends the slowest of the messages for which the first waiting one waits. */
  #endSlowest(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const own = [...this.#places].filter(({ owner }) => owner === first.owner);
    const waitsForOwner = own.length > 0 && sum(own) + first.bytes > this.#options.perOwnerBytes;
    const [slowest] = waitsForOwner ? own : this.#places;
    if (slowest !== undefined && Date.now() - slowest.since >= this.#options.slowMs) slowest.onSlow();
  }

  #roomOf(place: Place): MessageRoom {
    return {
      shrinkTo: (bytes) => {
        place.bytes = Math.min(place.bytes, bytes);
        this.#serve();
      },
      [Symbol.dispose]: () => {
        this.#places.delete(place);
        this.#serve();
      },
    };
  }
}

function sum(places: Iterable<{ bytes: number }>): number {
  let bytes = 0;
  for (const place of places) bytes += place.bytes;
  return bytes;
}
