import { stillOn } from '../../models/computers/beats.ts';
import { isLost, listHosts } from '../../models/computers/hosts.ts';
import type { HostDeps } from './deps.ts';

/**
 * Pauses the computers of a host that cannot report itself for as long as a host may be silent, if there are other
 * hosts: these start the computers by then, and no computer should run twice. The computers that are still this host's
 * resume with its next report.
 */
export class CutOff {
  readonly #deps: HostDeps;
  readonly #paused = new Set<string>();
  #reportedAt = Date.now();
  #hasOthers = false;

  constructor(deps: HostDeps) {
    this.#deps = deps;
  }

  /** Looks whether the last report is too long ago. Needs no database. */
  async look(): Promise<void> {
    const { config, host, logger } = this.#deps;
    const silentMs = Date.now() - this.#reportedAt;
    if (!this.#hasOthers || silentMs <= config.computers.hostLostMs) return;
    for (const { computerId, hosted } of await host.list()) {
      if (hosted.state !== 'running') continue;
      if (this.#paused.size === 0) logger.warn('The host cannot report itself, so its computers are paused.');
      this.#paused.add(computerId);
      await host.pause(computerId);
    }
  }

  /** The host has just reported itself. */
  async reported(): Promise<void> {
    const { config, database, host, logger } = this.#deps;
    this.#reportedAt = Date.now();
    const hosts = await listHosts(database);
    this.#hasOthers = hosts.some((each) => each.id !== host.hostId && !isLost(each, config));
    for (const computerId of await stillOn(database, host.hostId, [...this.#paused])) {
      await host.resume(computerId).catch((error: unknown) => {
        logger.warn({ err: error, computerId }, 'A paused computer could not be resumed.');
      });
    }
    this.#paused.clear();
  }
}
