import { readdir, rm } from 'node:fs/promises';
import { diskBytesOf } from './logRoom.ts';

interface KeptLimits {
  /** At most so many are kept, and for so long; of those of apps' runs, so many besides. */
  maxKept: number;
  maxKeptMs: number;
}

interface Kept {
  startedAt: string;
  diskBytes: number;
}

/** The processes that have ended, and what they take on disk. */
export class KeptProcesses {
  readonly #folder: string;
  readonly #limits: KeptLimits;
  /** The oldest first. */
  #kept = new Map<string, Kept>();
  #diskBytes = 0;

  constructor(folder: string, limits: KeptLimits) {
    this.#folder = folder;
    this.#limits = limits;
  }

  get diskBytes(): number {
    return this.#diskBytes;
  }

  async add(id: string, startedAt: string): Promise<void> {
    const diskBytes = await diskBytesOf(`${this.#folder}/${id}`);
    if (this.#kept.has(id)) this.#forget(id);
    this.#kept.set(id, { startedAt, diskBytes });
    this.#diskBytes += diskBytes;
  }

  /** After some were added that had ended before: the oldest first. */
  sort(): void {
    this.#kept = new Map([...this.#kept].toSorted(([, a], [, b]) => a.startedAt.localeCompare(b.startedAt)));
  }

  /** Deletes what there are too many of, and what is too old. */
  async prune(): Promise<void> {
    const oldest = Date.now() - this.#limits.maxKeptMs;
    const kinds = Map.groupBy([...this.#kept], ([id]) => isOfRun(id));
    for (const kind of kinds.values()) {
      const excess = kind.length - this.#limits.maxKept;
      for (const [index, [id, { startedAt }]] of kind.entries()) {
        if (index < excess || Date.parse(startedAt) <= oldest) await this.remove(id);
      }
    }
  }

  /** Deletes the one that has ended first, that of a run only where there is no other; undefined where there is none. */
  dropOldest(): Promise<void> | undefined {
    const ids = [...this.#kept.keys()];
    const oldest = ids.find((id) => !isOfRun(id)) ?? ids[0];
    return oldest === undefined ? undefined : this.remove(oldest);
  }

  remove(id: string): Promise<void> {
    this.#forget(id);
    return rm(`${this.#folder}/${id}`, { recursive: true, force: true });
  }

  #forget(id: string): void {
    this.#diskBytes -= this.#kept.get(id)?.diskBytes ?? 0;
    this.#kept.delete(id);
  }
}

/** How a run's process has ended is looked up by its run, however many others have ended since: callers have no such ids. */
function isOfRun(id: string): boolean {
  return id.startsWith('run_');
}

/** The names in a folder that can be ids; none where there is no folder. */
export async function idsIn(folder: string, isId: (name: string) => boolean): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter(isId);
}
