/** How many large results one process holds in memory at a time. A space may hold one of them. */
const places = 2;
/** How long a result may take to arrive once it has a place: a slow server must not block the others. */
const longestMs = 60_000;

/** A call's permit for a large result, until it is disposed of. */
export interface LargeResultTicket extends Disposable {
  /** Waits for a place, unless the call already has one. Throws the signal's reason. */
  admit(signal: AbortSignal): Promise<void>;
  /** Aborted when the result takes too long. */
  overdue: AbortSignal;
}

interface Waiting {
  spaceId: string;
  begin(): void;
}

/**
 * Limits a worker's memory if many calls have large results at once: results of 100 MB are read, redacted and stored
 * one after the other, while small ones pass.
 */
export class LargeResults {
  /** The spaces that have a place now. */
  readonly #held = new Set<string>();
  readonly #queue: Waiting[] = [];

  ticket(spaceId: string): LargeResultTicket {
    const overdue = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const begin = () => {
      timer = setTimeout(() => overdue.abort(), longestMs);
    };
    return {
      overdue: overdue.signal,
      admit: async (signal) => {
        if (timer === undefined) await this.#enter(spaceId, signal, begin);
      },
      [Symbol.dispose]: () => {
        if (timer === undefined) return;
        clearTimeout(timer);
        this.#held.delete(spaceId);
        this.#next();
      },
    };
  }

  #enter(spaceId: string, signal: AbortSignal, begin: () => void): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        spaceId,
        begin() {
          signal.removeEventListener('abort', leave);
          begin();
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#queue.push(waiting);
      this.#next();
    });
  }

  #next(): void {
    while (this.#held.size < places) {
      const at = this.#queue.findIndex(({ spaceId }) => !this.#held.has(spaceId));
      const [waiting] = at < 0 ? [] : this.#queue.splice(at, 1);
      if (waiting === undefined) return;
      this.#held.add(waiting.spaceId);
      waiting.begin();
    }
  }
}
