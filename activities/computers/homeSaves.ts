import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '../../base/async.ts';
import { detailOf } from '../../models/computers/reasons.ts';
import { forgetRemains, remainsOn } from '../../models/computers/remains.ts';
import { noteSaveFailure, savedHere, unfinished, usefulSaves } from '../../models/computers/saves.ts';
import { savesOfVersions } from '../../models/environments/builds/savedSteps.ts';
import type { HostDeps } from './deps.ts';
import { opens } from './fillHome.ts';
import { saveHome } from './saveHome.ts';

const savesAtOnce = 2;
/** How often whole homes are saved at most. Without btrfs, the host also looks through all files for changes. */
const wholeHomesMs = 5 * 60_000;
/** How often a host lets go of versions of environments that are needed no more. */
const keepMs = 10 * 60_000;
/** After a failed save. The pause doubles with each failure in a row. */
const pauses = { firstMs: 10_000, mostMs: 5 * 60_000 };

/** After the space had no room, the next saves are changes, although a whole home is due. */
const withoutBaseMs = 15 * 60_000;

interface Failure {
  count: number;
  retryAt: number;
}

/**
 * Saves the homes of this host to the object store, all the time, so that computers outlive their host. It also keeps
 * the work of computers that have left this host, and removes their homes.
 */
export class HomeSaves {
  readonly #deps: HostDeps;
  readonly #signal: AbortSignal;
  readonly #underWay = new Map<string, Promise<boolean>>();
  readonly #failures = new Map<string, Failure>();
  readonly #withoutBaseUntil = new Map<string, number>();
  /** When a change was first seen that is not saved yet. */
  readonly #unsavedSince = new Map<string, number>();
  readonly #waiting: (() => void)[] = [];
  #free = savesAtOnce;

  /** When the signal is aborted, saves are broken off. Those of a later process go on where they stopped. */
  constructor(deps: HostDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  /** Saves all homes that have changed, from time to time, until the signal is aborted. Never rejects. */
  async run({ wholeHomes }: { wholeHomes: boolean }): Promise<void> {
    const { saveMs, hostBeatMs } = this.#deps.config.computers;
    const everyMs = wholeHomes ? Math.max(saveMs, wholeHomesMs) : saveMs;
    await this.#forgetUseless();
    await this.keepVersions();
    await Promise.all([
      saveMs > 0 && this.#repeat(everyMs, () => this.begin()),
      this.#repeat(hostBeatMs, () => this.clearRemains()),
      this.#repeat(keepMs, () => this.keepVersions()),
    ]);
    await Promise.allSettled(this.#underWay.values());
  }

  async #repeat(everyMs: number, work: () => Promise<void>): Promise<void> {
    for (;;) {
      await delay(everyMs, undefined, { signal: this.#signal }).catch(() => undefined);
      if (this.#signal.aborted) return;
      await work().catch((error: unknown) => {
        this.#deps.logger.warn({ err: error }, 'The host could not look for homes to save; trying again.');
      });
    }
  }

  /** Begins to save all homes that have changed, and those whose save was cut off. */
  async begin(): Promise<void> {
    const { database, host } = this.#deps;
    const { hostId, saves } = host;
    const cutOff = (await unfinished(database.pool, { hostId })).map(({ computerId }) => computerId);
    const ids = await savedHere(database, hostId, [...new Set([...(await saves.changed()), ...cutOff])]);
    const now = Date.now();
    for (const id of this.#unsavedSince.keys()) if (!ids.includes(id)) this.#unsavedSince.delete(id);
    for (const id of ids) {
      if (!this.#unsavedSince.has(id)) this.#unsavedSince.set(id, now);
      if (now >= this.#retryAt(id)) this.#save(id).catch(() => undefined);
    }
  }

  /** Saves all of a home that nothing changes any more. The save goes on if the signal ends the wait for it. */
  async release(computerId: string, signal: AbortSignal): Promise<void> {
    const { database, host } = this.#deps;
    const { hostId, saves } = host;
    if (saves.format === 'tar' && (await savedHere(database, hostId, [computerId])).length > 0) {
      // Times of files may hide a change, as when the clock was set back. So the home is saved in any case.
      await this.#idle(computerId, signal);
      await saves.keepOnly(computerId, []);
    }
    while (await this.#isUnsaved(computerId, signal)) {
      const isSaved = await untilAborted(this.#save(computerId), signal);
      if (!isSaved) throw new Error('This host may not save the computer.');
    }
  }

  /**
   * Saves a home as it is now, while programs may go on changing it. Returns false if this host has lost the computer.
   */
  async saveNow(computerId: string, signal: AbortSignal): Promise<boolean> {
    const where = { computerId, hostId: this.#deps.host.hostId };
    // A save that is under way is of an earlier time.
    const isUnderWay = (await unfinished(this.#deps.database.pool, where)).length > 0;
    for (let left = isUnderWay ? 2 : 1; left > 0 && (await this.#isUnsaved(computerId, signal)); left--) {
      if (!(await untilAborted(this.#save(computerId), signal))) return false;
    }
    return true;
  }

  /**
   * Computers that have left this host: what was never saved becomes a snapshot. Then their homes are removed. Homes of
   * deleted computers are removed by the host's beat.
   */
  async clearRemains(): Promise<void> {
    const { database, host } = this.#deps;
    const { hostId } = host;
    for (const { computerId, isAlive } of await remainsOn(database, hostId)) {
      if (!isAlive || Date.now() < this.#retryAt(computerId)) continue;
      try {
        await host.stop(computerId);
        await this.release(computerId, this.#signal);
        const isHere = (await host.inspect(computerId)).state !== 'absent';
        if (isHere && !(await opens(this.#deps, computerId, this.#signal))) await this.#saveWhole(computerId);
        await host.destroy(computerId);
        await forgetRemains(database, { hostId, computerId });
      } catch (error) {
        if (Date.now() >= this.#retryAt(computerId)) this.#failed(computerId, error);
      }
    }
  }

  /**
   * Keeps what was built here although no computer uses it, so that computers of these environments need not fetch it,
   * and lets go of what is needed no more.
   */
  async keepVersions(): Promise<void> {
    const { database, host, logger } = this.#deps;
    try {
      await host.saves.keep(await savesOfVersions(database, host.hostId));
    } catch (error) {
      logger.warn({ err: error }, 'The host could not keep what it has built; computers fetch it when they begin.');
    }
  }

  /** Saves a home anew without its earlier saves, of which some cannot be opened any more. */
  async #saveWhole(computerId: string): Promise<void> {
    await this.#deps.host.saves.keepOnly(computerId, []);
    await this.release(computerId, this.#signal);
  }

  /** How long the oldest change waits to be saved, in seconds. */
  oldestSeconds(): number {
    const now = Date.now();
    return (now - Math.min(now, ...this.#unsavedSince.values())) / 1_000;
  }

  /** Snapshots of saves that the database does not know, as after a restore, would make their homes look saved. */
  async #forgetUseless(): Promise<void> {
    const { host, logger } = this.#deps;
    try {
      for (const { computerId } of await host.list()) await this.#keepUseful(computerId);
    } catch (error) {
      logger.warn({ err: error }, 'The host could not compare its snapshots of homes with their saves.');
    }
  }

  async #keepUseful(computerId: string): Promise<void> {
    const { database, host } = this.#deps;
    const { hostId, saves } = host;
    await saves.keepOnly(computerId, await usefulSaves(database, { computerId, hostId }, saves.kept(computerId)));
  }

  /**
   * Whether a home is not all saved. First waits for the save under way, and forgets snapshots of saves that will never
   * be complete.
   */
  async #isUnsaved(computerId: string, signal: AbortSignal): Promise<boolean> {
    await this.#idle(computerId, signal);
    const { database, host } = this.#deps;
    const { hostId, saves } = host;
    const where = { computerId, hostId };
    await this.#keepUseful(computerId);
    if ((await unfinished(database.pool, where)).length > 0) return true;
    return (await saves.changed()).includes(computerId);
  }

  /** Waits for the save that is under way. */
  async #idle(computerId: string, signal: AbortSignal): Promise<void> {
    await untilAborted(Promise.allSettled([this.#underWay.get(computerId)]), signal);
  }

  /** Saves a home once. Concurrent calls share one save. */
  #save(computerId: string): Promise<boolean> {
    const known = this.#underWay.get(computerId);
    if (known !== undefined) return known;
    const saving = this.#saveInTurn(computerId).finally(() => this.#underWay.delete(computerId));
    this.#underWay.set(computerId, saving);
    return saving;
  }

  async #saveInTurn(computerId: string): Promise<boolean> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      this.#signal.throwIfAborted();
      const avoidsBase = Date.now() < (this.#withoutBaseUntil.get(computerId) ?? 0);
      const isSaved = await saveHome(this.#deps, computerId, { signal: this.#signal, avoidsBase });
      this.#failures.delete(computerId);
      this.#unsavedSince.delete(computerId);
      return isSaved;
    } catch (error) {
      if (!this.#signal.aborted) {
        this.#failed(computerId, error);
        const code = codeOf(error);
        if (code === 'QUOTA_EXCEEDED') this.#withoutBaseUntil.set(computerId, Date.now() + withoutBaseMs);
        await this.#makeRoom(computerId, code).catch(() => undefined);
        const where = { computerId, hostId: this.#deps.host.hostId };
        await noteSaveFailure(this.#deps.database, where, code).catch(() => undefined);
      }
      throw error;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  /**
   * Snapshots hold what was deleted since, until the next save is complete. While that cannot be on a full disk, they
   * are let go, so that programs can go on. The next save is a whole home then.
   */
  async #makeRoom(computerId: string, code: string): Promise<void> {
    const { saves } = this.#deps.host;
    if (code !== 'DISK_FULL' && !(code === 'STORAGE_UNAVAILABLE' && saves.isFull())) return;
    await saves.keepOnly(computerId, []);
  }

  #retryAt(computerId: string): number {
    return this.#failures.get(computerId)?.retryAt ?? 0;
  }

  /** Logged once until it succeeds again. */
  #failed(computerId: string, error: unknown): void {
    if (this.#signal.aborted) return;
    const count = (this.#failures.get(computerId)?.count ?? 0) + 1;
    const waitMs = Math.min(pauses.firstMs * 2 ** (count - 1), pauses.mostMs);
    this.#failures.set(computerId, { count, retryAt: Date.now() + waitMs });
    const message = 'The home of a computer could not be saved; trying again.';
    if (count === 1) this.#deps.logger.warn({ err: error, computerId }, message);
  }
}

/** The code that people see. One that says nothing to them becomes `HOST_FAILED`. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && detailOf(code) !== '' ? code : 'HOST_FAILED';
}
