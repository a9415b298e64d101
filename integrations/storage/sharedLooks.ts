import { untilAborted } from '../../base/async.ts';
import type { Damage } from './checkedContent.ts';

/** The number of remembered answers. Each costs the read of a whole object. */
const mostAnswers = 10_000;

interface Look {
  answer: Promise<Damage | null>;
  hasEnded: boolean;
  /** The number of callers that wait for the answer. */
  waiting: number;
  abandoned: AbortController;
}

/** Reads of whole objects: one at a time per object, shared by all callers, and with its answer remembered. */
export class SharedLooks {
  readonly #looks = new Map<string, Look>();

  /**
   * The answer of `look`. It is not called if another caller has, or had, a look with the same name. The signal aborts
   * a look when its last caller leaves. A look that fails is repeated for the next caller.
   */
  async share(
    name: string,
    look: (abandoned: AbortSignal) => Promise<Damage | null>,
    signal?: AbortSignal,
  ): Promise<Damage | null> {
    signal?.throwIfAborted();
    const shared = this.#looks.get(name) ?? this.#begin(name, look);
    shared.waiting += 1;
    try {
      return await untilAborted(shared.answer, signal);
    } finally {
      shared.waiting -= 1;
      if (shared.waiting === 0 && !shared.hasEnded) {
        this.#forget(name, shared);
        shared.abandoned.abort();
      }
    }
  }

  #begin(name: string, look: (abandoned: AbortSignal) => Promise<Damage | null>): Look {
    const abandoned = new AbortController();
    const begun: Look = { answer: look(abandoned.signal), hasEnded: false, waiting: 0, abandoned };
    this.#looks.set(name, begun);
    const end = () => {
      begun.hasEnded = true;
    };
    begun.answer.then(end, () => {
      end();
      this.#forget(name, begun);
    });
    this.#forgetOldest();
    return begun;
  }

  #forget(name: string, look: Look): void {
    if (this.#looks.get(name) === look) this.#looks.delete(name);
  }

  #forgetOldest(): void {
    if (this.#looks.size <= mostAnswers) return;
    for (const [name, { hasEnded }] of this.#looks) {
      if (hasEnded) return void this.#looks.delete(name);
    }
  }
}
