import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from '../process/git.ts';
import { Note } from './note.ts';
import { packsIn, removeLeftovers, removeLooseObjects, removePacksBut } from './repository.ts';

interface State {
  /** The mirror has all objects of this saved version. */
  version: number;
  /** The refs are that version's too, and all objects are checked. */
  isClean: boolean;
  /** For an unclean mirror: its packs before the change. */
  packs?: string[];
}

/** The state of a mirror on this machine, in a file beside the mirror. It outlives a killed process. */
export class FolderState {
  readonly #note: Note<State>;
  readonly #git: Git;

  constructor(root: string, git: Git) {
    this.#note = new Note(root, 'state');
    this.#git = git;
  }

  /** Undefined if there is no mirror, or its state is not to be trusted. */
  async read(): Promise<State | undefined> {
    const hasMirror = await stat(join(this.#git.dir, 'HEAD')).catch(() => undefined);
    return hasMirror && this.#note.read();
  }

  /** Marks the mirror: unchecked objects may arrive from now on until the state is settled. */
  async begin(version: number): Promise<void> {
    await this.#note.write({ version, isClean: false, packs: await packsIn(this.#git) });
  }

  settle(version: number): Promise<void> {
    return this.#note.write({ version, isClean: true });
  }

  forget(): Promise<void> {
    return this.#note.forget();
  }

  /**
   * Removes the objects of an unfinished change: git may not have checked the objects of a failed fetch. Returns false
   * if objects from before the change are missing.
   */
  async undo({ isClean, packs }: State): Promise<boolean> {
    await removeLeftovers(this.#git);
    if (isClean) return true;
    const now = await packsIn(this.#git);
    if (packs === undefined || !packs.every((name) => now.includes(name))) return false;
    await removePacksBut(this.#git, packs);
    // Checked objects are always in packs.
    await removeLooseObjects(this.#git);
    return true;
  }
}
