import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '../../../disk/durable.ts';

/** A small JSON file beside a mirror. It outlives the process, and its loss does no harm. */
export class Note<T> {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.json`);
  }

  /** Undefined if the note is missing or unreadable. */
  async read(): Promise<T | undefined> {
    try {
      return JSON.parse(await readFile(this.#file, 'utf8')) as T;
    } catch {
      return undefined;
    }
  }

  write(value: T): Promise<void> {
    return writeDurably(this.#file, JSON.stringify(value));
  }

  forget(): Promise<void> {
    return rm(this.#file, { force: true });
  }
}
