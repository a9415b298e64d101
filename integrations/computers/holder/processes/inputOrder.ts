import { DomainError } from '../../../../base/errors.ts';

/** A writer costs a name and a number for as long as the process runs. */
const maxWriters = 4_096;

/**
 * The last input of each writer to a process. A repeated input, whose answer was lost, is not typed again. No writer is
 * forgotten while the process runs, since its last input might be repeated.
 */
export class InputOrder {
  readonly #last = new Map<string, number>();

  /**
   * Whether this input was taken before. Throws 409 where a number was left out, and where no further writer can be
   * remembered.
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
