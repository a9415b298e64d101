import type { LogFollower } from './logReader.ts';

/** How long a part of a log stays for a reader that has not read it yet. Its writer waits meanwhile. */
const patienceMs = 2_000;
/** What was given to a reader may be on its way still, and is asked for again where its connection is cut. */
const onItsWayBytes = 1_048_576;

interface Reader {
  position: number;
  /** It was too slow, and is waited for again once it has come to the end. */
  isBehind: boolean;
  /** Its connection was cut, perhaps: it may come again where it was. */
  hasLeft: boolean;
}

/** Who reads a log as it is written. */
export class Followers {
  readonly #end: () => number;
  /** Whoever has started the process is about to read it, if they do at all. */
  readonly #readers = new Set<Reader>([{ position: 0, isBehind: false, hasLeft: true }]);
  #moved = Promise.withResolvers<void>();

  /** `end`: up to where it has been written. */
  constructor(end: () => number) {
    this.#end = end;
  }

  /** Whether somebody reads, and nobody is too slow. */
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
        this.#tell();
      },
      left: () => {
        reader.hasLeft = true;
        setTimeout(() => this.#readers.delete(reader), patienceMs).unref();
      },
    };
  }

  /** Settles when all that keep up have read up to there; those that do not in time get a gap. */
  async past(position: number): Promise<void> {
    // Never more than there is: who has read all cannot read on.
    const enough = position + Math.min(onItsWayBytes, Math.floor((this.#end() - position) / 2));
    const slow = () => [...this.#readers].filter((each) => each.position < enough && !each.isBehind);
    if (slow().length === 0) return;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#tell();
    }, patienceMs);
    while (slow().length > 0 && !isLate) await this.#moved.promise;
    clearTimeout(timer);
    for (const reader of slow()) {
      if (reader.hasLeft) this.#readers.delete(reader);
      else reader.isBehind = true;
    }
  }

  #tell(): void {
    this.#moved.resolve();
    this.#moved = Promise.withResolvers();
  }
}
