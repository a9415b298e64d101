import { DomainError } from '../../../../base/errors.ts';

/** Each is a name and a number, for as long as its process runs. */
const maxWriters = 4_096;

/**
 * Who has written what to a process: an input that comes again, since its answer was lost, is not typed again. No writer
 * is forgotten while the process runs, for what it sent last might come again.
 */
export class InputOrder {
  /** The last number of each writer. */
  readonly #last = new Map<string, number>();

  /** Throws 409 where a number was left out, or there are too many writers to remember another. */
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
