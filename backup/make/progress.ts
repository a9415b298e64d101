import { randomBytes } from 'node:crypto';
import { DamageError } from '../errors.ts';
import type { ObjectEntry } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';
import { SortedEntries } from './sortedEntries.ts';

const folder = 'progress/';
const entriesAtOnce = 500;
/** Form of the names of an attempt's notes, which sort in order. Other names in the folder are ignored. */
const nameForm = /^progress\/([0-9a-f]{16})\/\d{8}$/;

/** Yields the notes of one attempt, sorted by key. Skips a damaged note: its objects are read again. */
async function* entriesIn(vault: Vault, names: readonly string[]): AsyncGenerator<ObjectEntry> {
  for (const name of names) {
    try {
      yield* ((await vault.readSealed(name)) ?? []) as ObjectEntry[];
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
    }
  }
}

/**
 * Remembers what interrupted backups copied. Removed once a backup is complete. Objects are looked up and noted by
 * ascending key, so that only a few are in memory.
 */
export class Progress {
  readonly #vault: Vault;
  readonly #attempts: SortedEntries[];
  readonly #own = randomBytes(8).toString('hex');
  #count = 0;
  #noted: ObjectEntry[] = [];

  private constructor(vault: Vault, attempts: SortedEntries[]) {
    this.#vault = vault;
    this.#attempts = attempts;
  }

  static async open(vault: Vault): Promise<Progress> {
    const attempts = new Map<string, string[]>();
    for await (const name of vault.place.list(folder)) {
      const attempt = nameForm.exec(name)?.[1];
      if (attempt !== undefined) attempts.set(attempt, [...(attempts.get(attempt) ?? []), name]);
    }
    const lists = [...attempts.values()].map((names) => new SortedEntries(entriesIn(vault, names.sort())));
    return new Progress(vault, lists);
  }

  async find(key: string): Promise<ObjectEntry | undefined> {
    let found: ObjectEntry | undefined;
    // Every attempt's cursor must advance.
    for (const attempt of this.#attempts) found = (await attempt.find(key)) ?? found;
    return found;
  }

  async note(entry: ObjectEntry): Promise<void> {
    this.#noted.push(entry);
    if (this.#noted.length < entriesAtOnce) return;
    const entries = this.#noted;
    this.#noted = [];
    const number = String(this.#count++).padStart(8, '0');
    await this.#vault.writeSealed(`${folder}${this.#own}/${number}`, entries);
  }

  /** Removes all notes, once a backup is complete. */
  static async forget(vault: Vault): Promise<void> {
    const names: string[] = [];
    for await (const name of vault.place.list(folder)) names.push(name);
    await vault.place.remove(names);
  }
}
