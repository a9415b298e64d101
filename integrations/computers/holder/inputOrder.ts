import { DomainError } from '../../../models/errors.ts';

const maxWriters = 100;

/** Who has written what: an input that comes again, since its answer was lost, is not typed again. */
export class InputOrder {
  /** The last number of each writer; who wrote last is at the end. */
  readonly #last = new Map<string, number>();

  /** Throws 409 where a number was left out. */
  isKnown(writer: string, seq: number): boolean {
    const last = this.#last.get(writer) ?? 0;
    if (seq > last + 1) {
      throw new DomainError('conflict', 'INPUT_OUT_OF_ORDER', `The next input of this writer is number ${last + 1}.`);
    }
    return seq <= last;
  }

  take(writer: string, seq: number): void {
    this.#last.delete(writer);
    this.#last.set(writer, seq);
    const [oldest] = this.#last.keys();
    if (this.#last.size > maxWriters && oldest !== undefined) this.#last.delete(oldest);
  }
}
