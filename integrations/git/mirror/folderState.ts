import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDurably } from '../../../disk/durable.ts';
import type { Git } from './git.ts';
import { packsIn, removeLeftovers, removeLooseObjects, removePacks } from './repository.ts';

interface State {
  /** The saved version that the mirror has all objects of. */
  version: number;
  /** Whether its refs are that version's too, and all objects checked. */
  isClean: boolean;
  /** Those before the change that makes it unclean. */
  packs?: string[];
}

/** What a mirror on this machine is, in a file beside it, which a process that is killed leaves behind. */
export class FolderState {
  readonly #file: string;
  readonly #git: Git;

  constructor(root: string, git: Git) {
    this.#file = join(root, 'state.json');
    this.#git = git;
  }

  /** Undefined where there is no mirror, or one that is not to be trusted. */
  async read(): Promise<State | undefined> {
    try {
      const state = JSON.parse(await readFile(this.#file, 'utf8')) as State;
      await stat(join(this.#git.dir, 'HEAD'));
      return state;
    } catch {
      return undefined;
    }
  }

  /** From here on until it is settled, objects may come that nobody has checked. */
  async begin(version: number): Promise<void> {
    await this.#write({ version, isClean: false, packs: await packsIn(this.#git) });
  }

  settle(version: number): Promise<void> {
    return this.#write({ version, isClean: true });
  }

  async forget(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  /**
   * Removes what has come since a change was begun that has not ended: of a fetch that failed, git may not have checked
   * it. False where the objects that were there before are not all there.
   */
  async undo({ isClean, packs }: State): Promise<boolean> {
    await removeLeftovers(this.#git, { keepTemporaryPacks: false });
    if (isClean) return true;
    const now = await packsIn(this.#git);
    if (packs === undefined || !packs.every((name) => now.includes(name))) return false;
    const added = now.filter((name) => !packs.includes(name));
    await removePacks(this.#git, added);
    // Git makes packs alone of what it checks.
    await removeLooseObjects(this.#git);
    return true;
  }

  #write(state: State): Promise<void> {
    return writeDurably(this.#file, JSON.stringify(state));
  }
}
