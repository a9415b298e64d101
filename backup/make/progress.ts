import { randomBytes } from 'node:crypto';
import { DamageError } from '../errors.ts';
import type { ObjectEntry } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

const folder = 'progress/';
const entriesAtOnce = 500;

/** Where it is damaged, or none of ours, its objects are read again. */
async function readEntries(vault: Vault, name: string): Promise<ObjectEntry[]> {
  try {
    return ((await vault.readSealed(name)) ?? []) as ObjectEntry[];
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    return [];
  }
}

/** What was copied by backups that were broken off. Gone with the backup that has it all. */
export class Progress {
  private readonly vault: Vault;
  private readonly before: ReadonlyMap<string, ObjectEntry>;
  private noted: ObjectEntry[] = [];

  private constructor(vault: Vault, before: ReadonlyMap<string, ObjectEntry>) {
    this.vault = vault;
    this.before = before;
  }

  static async open(vault: Vault): Promise<Progress> {
    const before = new Map<string, ObjectEntry>();
    for await (const name of vault.place.list(folder)) {
      for (const entry of await readEntries(vault, name)) before.set(entry.key, entry);
    }
    return new Progress(vault, before);
  }

  find(key: string): ObjectEntry | undefined {
    return this.before.get(key);
  }

  async note(entry: ObjectEntry): Promise<ObjectEntry> {
    this.noted.push(entry);
    if (this.noted.length >= entriesAtOnce) {
      const entries = this.noted;
      this.noted = [];
      await this.vault.writeSealed(folder + randomBytes(8).toString('hex'), entries);
    }
    return entry;
  }

  /** After a backup is there. */
  static async forget(vault: Vault): Promise<void> {
    const names: string[] = [];
    for await (const name of vault.place.list(folder)) names.push(name);
    await vault.place.remove(names);
  }
}
