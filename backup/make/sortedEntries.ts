import { BackupError } from '../errors.ts';
import type { ObjectEntry } from '../vault/manifests.ts';

/**
 * Finds entries in a list sorted by key, for callers that ask by ascending key. Holds only the next entry in memory.
 * After damage in the list it finds nothing more.
 */
export class SortedEntries {
  #entries: AsyncGenerator<ObjectEntry> | undefined;
  #next: ObjectEntry | undefined;

  constructor(entries: AsyncGenerator<ObjectEntry> | undefined) {
    this.#entries = entries;
  }

  async find(key: string): Promise<ObjectEntry | undefined> {
    while (this.#entries !== undefined && (this.#next === undefined || this.#next.key < key)) {
      const { done, value } = await this.#entries.next().catch(ended);
      if (done === true) this.#entries = undefined;
      this.#next = value;
    }
    return this.#next?.key === key ? this.#next : undefined;
  }
}

function ended(error: unknown): IteratorResult<ObjectEntry, undefined> {
  if (!(error instanceof BackupError)) throw error;
  return { done: true, value: undefined };
}
