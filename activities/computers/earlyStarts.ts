import { type Computer, findComputer } from '../../models/computers/computer.ts';
import type { HostDeps } from './deps.ts';
import { startOrdered } from './startOrdered.ts';

type Deps = Pick<HostDeps, 'database' | 'host' | 'computers' | 'environment' | 'logger' | 'storage' | 'sealedSaves'>;

/**
 * Starts computers before their start activity runs. The order is in the computer's row before its workflow is told. If
 * this process is the computer's host, it starts the computer while Temporal does its part, and the activity finds it
 * running. Nothing depends on this. The workflow repeats a start that fails here or dies with this process. A start
 * that was called off meanwhile is ended by the workflow's next step, or else by the host's next beat.
 */
export class EarlyStarts {
  readonly #deps: Deps;
  readonly #underWay = new Map<string, Promise<boolean>>();
  #isOpen = true;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Resolves with whether it runs, or with false at once if this is not its host. Concurrent calls share one start. */
  begin(computer: Computer): Promise<boolean> {
    const { id, generation } = computer;
    if (!this.#isOpen || !this.#isOrdered(computer)) return Promise.resolve(false);
    const key = `${id}/${generation}`;
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const begun = this.#start(computer).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, begun);
    return begun;
  }

  /** Begins no more starts. Settles when those under way have ended. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all(this.#underWay.values());
  }

  async #start(computer: Computer): Promise<boolean> {
    const { id: computerId, generation } = computer;
    try {
      await startOrdered(this.#deps, computer, { confirm: () => this.#confirm(computer) });
      return !(await this.#removeIfDeleted(computer));
    } catch (error) {
      const message = 'A computer could not be started before its workflow was told, which tries again.';
      this.#deps.logger.warn({ err: error, computerId, generation }, message);
      return false;
    }
  }

  /** A start that first fetches an image takes minutes, so its workflow is not kept waiting. */
  #isOrdered({ status, wish, hostId, image, homeSaveId }: Computer): boolean {
    const isQuick = image === null || homeSaveId !== null;
    return isQuick && status === 'starting' && wish === 'wake' && hostId === this.#deps.host.hostId;
  }

  async #confirm({ id, generation }: Computer): Promise<void> {
    const now = await findComputer(this.#deps.database, id);
    const isWanted = now?.generation === generation && now.deletedAt === null && this.#isOrdered(now);
    if (!isWanted) throw new Error('This start of the computer is no longer wanted.');
  }

  /** Its workflow may have removed it before it was made here, and does not look again. */
  async #removeIfDeleted({ id }: Computer): Promise<boolean> {
    const now = await findComputer(this.#deps.database, id);
    if (now !== undefined && now.deletedAt === null) return false;
    await this.#deps.host.destroy(id);
    return true;
  }
}
