import { setTimeout as delay } from 'node:timers/promises';
import type { HostedState } from '../../integrations/computers/types.ts';
import { type Alive, activeOn, noteAlive, noteGone } from '../../models/computers/beats.ts';
import type { Computer } from '../../models/computers/computer.ts';
import { orderedMoves } from '../../models/computers/draining.ts';
import { type HostReport, reportHost } from '../../models/computers/hosts.ts';
import { forgetRemains, remainsOn } from '../../models/computers/remains.ts';
import { CutOff } from './cutOff.ts';
import type { HostDeps } from './deps.ts';

type Hosted = { computerId: string; hosted: HostedState };

/**
 * What a host does by itself every few seconds: it reports itself and its computers, ends computers that should not run
 * here, and removes what is left of deleted ones.
 */
export class HostBeat {
  readonly #deps: HostDeps;
  readonly #report: Omit<HostReport, 'id' | 'drivers' | 'bases'>;
  readonly #cutOff: CutOff;

  constructor(deps: HostDeps, report: Omit<HostReport, 'id' | 'drivers' | 'bases'>) {
    this.#deps = deps;
    this.#report = report;
    this.#cutOff = new CutOff(deps);
  }

  /** Beats until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#repeat(signal, () => this.beat(), 'The host could not say what it runs; trying again.'),
      // Beside the beats, because a beat may wait long for the database.
      this.#repeat(signal, () => this.#cutOff.look(), 'The host could not pause its computers; trying again.'),
    ]);
  }

  async #repeat(signal: AbortSignal, work: () => Promise<void>, failed: string): Promise<void> {
    const { config, logger } = this.#deps;
    while (!signal.aborted) {
      await work().catch((error: unknown) => logger.warn({ err: error }, failed));
      await delay(config.computers.hostBeatMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async beat(): Promise<void> {
    const { database, host } = this.#deps;
    const { hostId: id, drivers, bases } = host;
    await reportHost(database, { id, drivers, bases, ...this.#report });
    await this.#cutOff.reported();
    const at = new Date();
    const should = await activeOn(database, host.hostId);
    const does = await this.#look(should);
    for (const { computerId, hosted } of does) {
      if (hosted.state !== 'running' && hosted.state !== 'paused') continue;
      const { state, generation, runningProcesses } = hosted;
      const lastActiveAt = new Date(hosted.lastActiveAt);
      await this.#each(computerId, () =>
        this.#noteAlive({ computerId, state, generation, runningProcesses, lastActiveAt }, at),
      );
    }
    const known = new Map(does.map(({ computerId, hosted }) => [computerId, hosted]));
    for (const computer of should) {
      const hosted = known.get(computer.id);
      if (hosted !== undefined && !isGone(hosted, computer)) continue;
      await this.#each(computer.id, async () => {
        const code = hosted?.state === 'gone' ? hosted.code : undefined;
        await noteGone(this.#deps, host.hostId, computer, at, code);
        await this.#deps.workflows.startComputer(computer);
      });
    }
    const { hostId } = host;
    // The command that ordered a move tells no workflow.
    const lately = new Date(at.getTime() - 2 * this.#deps.config.computers.hostBeatMs);
    for (const computer of await orderedMoves(database, hostId, lately)) {
      await this.#each(computer.id, async () => void (await this.#deps.workflows.startComputer(computer)));
    }
    for (const { computerId, isAlive } of await remainsOn(database, hostId)) {
      // What a living computer has here may be work that was never saved: homeSaves.ts removes it.
      if (isAlive) continue;
      await this.#each(computerId, async () => {
        await host.destroy(computerId);
        await forgetRemains(database, { hostId, computerId });
      });
    }
  }

  /**
   * What runs here. If the list fails, each computer is asked by itself. One that does not answer counts as what its
   * row says.
   */
  async #look(should: readonly Computer[]): Promise<Hosted[]> {
    const { host } = this.#deps;
    try {
      return await host.list();
    } catch {
      const looks = should.map(async ({ id, generation, status }): Promise<Hosted> => {
        const nothingNew = { generation, startedAt: '', lastActiveAt: new Date().toISOString(), runningProcesses: 1 };
        const state = status === 'paused' ? 'paused' : 'running';
        const hosted = await host.inspect(id).catch(() => ({ state, ...nothingNew }) as const);
        return { computerId: id, hosted };
      });
      return Promise.all(looks);
    }
  }

  async #noteAlive(alive: Alive, at: Date): Promise<void> {
    const { host, workflows, logger } = this.#deps;
    const { computerId, generation } = alive;
    const verdict = await noteAlive(this.#deps, host.hostId, alive, at);
    if (verdict === 'stop') {
      logger.warn({ computerId, generation }, 'A computer is running that should not run any more; it is stopped.');
      await host.stop(computerId, { generation });
    } else if (verdict !== 'fine') await workflows.startComputer({ id: computerId, spaceId: verdict.spaceId });
  }

  /** A failure at one computer does not affect the others. The next beat tries again. */
  async #each(computerId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.logger.warn({ err: error, computerId }, 'The host could not look after this computer; trying again.');
    }
  }
}

function isGone(hosted: HostedState, { generation }: Computer): boolean {
  return (hosted.state !== 'running' && hosted.state !== 'paused') || hosted.generation < generation;
}
