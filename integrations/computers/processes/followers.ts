import { Changes } from '../../../base/async.ts';
import type { LogFollower } from './logReader.ts';

/** How long a writer waits for a reader before it drops a part of the log that the reader has not read yet. */
const patienceMs = 2_000;
/** Bytes given to a reader may still be on their way. If its connection is cut, the reader asks for them again. */
const onItsWayBytes = 1_048_576;

interface Reader {
  position: number;
  /** The reader was too slow. The writer does not wait for it until it reaches the end again. */
  isBehind: boolean;
  /** The reader has left. It may reconnect at its position. */
  hasLeft: boolean;
}

/** The readers that follow a log. */
export class Followers {
  readonly #end: () => number;
  /** Begins with an expected reader at position 0: if the starter of a process reads it, it does so soon. */
  readonly #readers = new Set<Reader>([{ position: 0, isBehind: false, hasLeft: true }]);
  readonly #moves = new Changes();

  /** `end` gives the position up to which the log is written. */
  constructor(end: () => number) {
    this.#end = end;
  }

  /** Whether there are readers, and all keep up. */
  get keepUp(): boolean {
    const readers = [...this.#readers];
    return readers.some(({ hasLeft }) => !hasLeft) && readers.every(({ isBehind }) => !isBehind);
  }

  add(position: number): LogFollower {
    for (const each of this.#readers) if (each.hasLeft) this.#readers.delete(each);
    const reader: Reader = { position, isBehind: false, hasLeft: false };
    this.#readers.add(reader);
    return {
      reached: (at) => {
        reader.position = at;
        if (at >= this.#end()) reader.isBehind = false;
        this.#moves.tell();
      },
      left: () => {
        reader.hasLeft = true;
        setTimeout(() => this.#readers.delete(reader), patienceMs).unref();
      },
    };
  }

  /** Settles when all readers that keep up have passed this position. Late readers get a gap. */
  async past(position: number): Promise<void> {
    // Require no more than exists: a reader at the end cannot read on.
    const enough = position + Math.min(onItsWayBytes, Math.floor((this.#end() - position) / 2));
    const slow = () => [...this.#readers].filter((each) => each.position < enough && !each.isBehind);
    if (slow().length === 0) return;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#moves.tell();
    }, patienceMs);
    while (slow().length > 0 && !isLate) await this.#moves.next;
    clearTimeout(timer);
    for (const reader of slow()) {
      if (reader.hasLeft) this.#readers.delete(reader);
      else reader.isBehind = true;
    }
  }
}
