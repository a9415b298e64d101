import { chownSync, rmdirSync } from 'node:fs';
import type { DaemonState, DriveDaemon, DriveMount } from '../../drives/daemon.ts';
import { ifThere } from '../../system/ifThere.ts';
import { computerLayout, type HostLayout } from '../layout.ts';
import { readRecord } from '../records.ts';
import { removeDeadMount } from './drivePlaces.ts';
import type { WantedMounts } from './wantedMounts.ts';

interface Deps {
  layout: HostLayout;
  log: (level: 'warn', facts: Record<string, unknown>, message: string) => void;
  watchMs: number;
  /** Whether a start of the computer mounts it now: only that knows when its sandbox sees a mount. */
  isMounting: (computerId: string) => boolean;
}

/** Keeps the program that mounts drives running, and its mounts as they are wanted. */
export class MountKeeper {
  readonly #deps: Deps;
  readonly #daemon: DriveDaemon;
  readonly #wanted: WantedMounts;
  #isClosing = false;
  /** Whether the daemon may have mounts of computers that have ended. */
  #hasStrays = true;
  #looking: Promise<void> = Promise.resolve();
  #ensuring: Promise<DaemonState> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: Deps, daemon: DriveDaemon, wanted: WantedMounts) {
    this.#deps = deps;
    this.#daemon = daemon;
    this.#wanted = wanted;
  }

  /** A start of the daemon that is under way. */
  get ensuring(): Promise<DaemonState> | undefined {
    return this.#ensuring;
  }

  /** Stops looking. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#looking;
    await this.#ensuring?.catch(() => undefined);
  }

  /** Mounts a drive. */
  async put(computerId: string, mount: Parameters<DriveDaemon['mount']>[1]): Promise<void> {
    await this.#daemon.mount(computerId, mount);
    // With a root file system of its own, the home may belong to another user than the holder.
    const uid = readRecord(this.#deps.layout, computerId)?.uid;
    if (uid != null) chownSync(mount.syncSocket, uid, uid);
  }

  /** If it fails, the next look tries again: the daemon keeps the computer's volume in use. */
  async takeDown(computerId: string, timeoutMs: number): Promise<void> {
    try {
      await this.#daemon.unmount(computerId, timeoutMs);
      ifThere(() => rmdirSync(computerLayout(this.#deps.layout, computerId).drive));
    } catch (error) {
      this.#hasStrays = true;
      throw error;
    }
  }

  /** Starts the daemon, unless it runs. Callers share one start. */
  ensure(): Promise<DaemonState> {
    this.#ensuring ??= this.#daemon.ensure().finally(() => {
      this.#ensuring = undefined;
    });
    return this.#ensuring;
  }

  /** Looks after the daemon and the mounts after this time, and from then on regularly. */
  lookLater(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => this.lookLater(this.#deps.watchMs));
    }, ms).unref();
  }

  /** Starts a daemon that was killed, brings its mounts in line, and tells what has changed. */
  async #look(): Promise<void> {
    if (this.#wanted.isEmpty && !this.#hasStrays) return;
    try {
      const state = (await this.#daemon.state()) ?? (this.#wanted.isEmpty ? undefined : await this.#startAgain());
      this.#hasStrays = false;
      const mounts = new Map(state?.mounts.map((mount) => [mount.computerId, mount]));
      for (const [computerId, mount] of this.#wanted) {
        if (this.#deps.isMounting(computerId)) continue;
        const now = mounts.get(computerId);
        if (now?.mounted !== true) await this.#putAgain(computerId, mount);
        else
          this.#wanted.tell(computerId, {
            access: now.access,
            pendingFiles: now.pendingFiles,
            error: now.error || null,
          });
      }
      // These computers ended while no process was their host, or while the daemon did not answer.
      for (const { computerId, mounted } of mounts.values())
        if (mounted && !this.#wanted.has(computerId)) await this.takeDown(computerId, 0);
    } catch (error) {
      for (const [computerId] of this.#wanted) this.#wanted.failed(computerId, error);
    }
  }

  async #putAgain(computerId: string, mount: DriveMount): Promise<void> {
    try {
      await this.put(computerId, mount);
      // The computer may have ended meanwhile.
      if (!this.#wanted.has(computerId)) await this.takeDown(computerId, 0);
    } catch (error) {
      this.#wanted.failed(computerId, error);
    }
  }

  async #startAgain(): Promise<DaemonState> {
    this.#deps.log('warn', {}, 'The program that mounts the drives of computers has ended; it is started again');
    for (const [, mount] of this.#wanted) await removeDeadMount(mount.target);
    return this.ensure();
  }
}
