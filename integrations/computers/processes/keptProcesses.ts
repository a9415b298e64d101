import { rm } from 'node:fs/promises';
import { diskBytesOf } from './logRoom.ts';

interface KeptLimits {
  /**
   * At most this many processes are kept, and for this long. Runs of apps are counted separately, with the same limits.
   */
  maxKept: number;
  maxKeptMs: number;
}

interface Kept {
  startedAt: string;
  diskBytes: number;
}

/** The processes that have ended, and their use of the disk. */
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

  /** Call it after processes of earlier holders were added. */
  sort(): void {
    this.#kept = new Map([...this.#kept].toSorted(([, a], [, b]) => a.startedAt.localeCompare(b.startedAt)));
  }

  /** Deletes processes that are too many or too old. */
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

  /** Deletes the oldest process, but runs of apps last. Undefined if there is no process. */
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

/**
 * Whether an id belongs to an app's run. The end of a run is looked up later, even if many other processes have ended
 * since. Callers cannot choose such ids.
 */
function isOfRun(id: string): boolean {
  return id.startsWith('run_');
}
