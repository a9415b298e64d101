import { DomainError } from '../../../../base/errors.ts';

/** Each writer's name and number stay in memory while the process runs. */
const maxWriters = 4_096;

/**
 * Remembers the last input of each writer to a process, so that an input repeated after a lost answer is not typed
 * again. No writer is forgotten while the process runs, because it may still repeat its last input.
 */
export class InputOrder {
  readonly #last = new Map<string, number>();

  /**
   * Returns whether this input was taken before. Throws 409 if a number was left out, or if there are too many writers.
   */
  isKnown(writer: string, seq: number): boolean {
    const last = this.#last.get(writer) ?? 0;
    if (seq > last + 1) {
      throw new DomainError('conflict', 'INPUT_OUT_OF_ORDER', `The next input of this writer is number ${last + 1}.`);
    }
    if (last === 0 && this.#last.size >= maxWriters) {
      const detail = `${maxWriters} writers have written to this process. Write as one of them, or without a number.`;
      throw new DomainError('conflict', 'TOO_MANY_WRITERS', detail);
    }
    return seq <= last;
  }

  take(writer: string, seq: number): void {
    this.#last.set(writer, seq);
  }
}
