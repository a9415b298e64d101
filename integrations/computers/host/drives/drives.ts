import { once } from 'node:events';
import { chmodSync, rmdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { lookUntil } from '../../../../base/async.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { DriveBackend, DriveRoot } from '../../drives/backend.ts';
import { createBackendServer } from '../../drives/backendServer.ts';
import { DriveDaemon, type DriveMount } from '../../drives/daemon.ts';
import { ifThere } from '../../system/ifThere.ts';
import { computerLayout, type HostLayout } from '../layout.ts';
import { isRoot } from '../machine/setUp.ts';
import type { ComputerRecord, ComputerRun } from '../records.ts';
import {
  type DrivePlace,
  missingForDrives,
  prepareDrive,
  removeDeadMount,
  seesDrive,
  shareMounts,
  takeAway,
  unshareMounts,
} from './drivePlaces.ts';
import { MountKeeper } from './mountKeeper.ts';
import { type DriveReport, nothing, WantedMounts } from './wantedMounts.ts';

export interface DriveOptions {
  /** The path of the program that mounts drives, which `stack/` builds. Undefined if there is a refusal. */
  program?: string;
  /** Undefined: nobody answers the daemon. */
  backend?: DriveBackend;
  /** How many bytes of contents it keeps on this machine. */
  cacheBytes?: number;
  /** Called when something has changed. */
  onReport?: (computerId: string, report: DriveReport) => void;
  /** Why no computer of this host has its drive. Undefined if they may have it. */
  refused?: string | undefined;
}

type Log = (level: 'info' | 'warn' | 'error', facts: Record<string, unknown>, message: string) => void;

interface Deps {
  layout: HostLayout;
  options: DriveOptions;
  log: Log;
  watchMs: number;
}

/** How long a computer that ends waits for its files to get into the drive. Later they go there without it. */
const unmountMs = 2_000;
/** How long the mounts of a sandbox may take. */
const bindMs = 2_000;

/** Why no computer of this host has its drive. Undefined if they may have it. */
const missingFor = ({ refused }: DriveOptions) => refused ?? missingForDrives();

/** The drives in the computers of this host. A computer runs without its drive if that cannot be mounted. */
export class Drives {
  readonly #deps: Deps;
  readonly #daemon: DriveDaemon;
  readonly #server: Server | undefined;
  readonly #missing: string | undefined;
  readonly #wanted: WantedMounts;
  readonly #keeper: MountKeeper;
  readonly #mounting = new Map<string, Promise<void>>();
  /** What the backend says of drives that are about to be mounted. */
  readonly #roots = new Map<string, Promise<DriveRoot | undefined>>();

  private constructor(deps: Deps) {
    const { layout, options } = deps;
    this.#deps = deps;
    this.#wanted = new WantedMounts({ onReport: options.onReport, log: deps.log });
    const { program = '', backend, cacheBytes = 0 } = options;
    this.#missing = missingFor(options);
    this.#server =
      backend &&
      createBackendServer(backend, (err) =>
        deps.log('error', { err }, 'A request for a drive in a computer has failed'),
      );
    this.#daemon = new DriveDaemon({
      program,
      cacheBytes,
      backendSocket: layout.driveBackend,
      controlSocket: layout.driveControl,
      cacheDir: layout.driveCache,
      stageDir: layout.driveStage,
      log: layout.driveLog,
    });
    const isMounting = (computerId: string) => this.#mounting.has(computerId);
    this.#keeper = new MountKeeper({ ...deps, isMounting }, this.#daemon, this.#wanted);
  }

  /** Makes the folder for mounts, if this host can have them. Before any holder starts. */
  static async share(layout: HostLayout, options: DriveOptions): Promise<void> {
    if (missingFor(options) === undefined) await shareMounts(layout);
  }

  /** Serves the daemon, and takes over the mounts of computers that run. */
  static async open(deps: Deps, running: readonly ComputerRecord[]): Promise<Drives> {
    const drives = new Drives(deps);
    const { layout, log } = deps;
    if (drives.#missing !== undefined)
      log('info', { missing: drives.#missing }, 'Computers start without the drives of their spaces');
    await drives.#listen(layout.driveBackend);
    for (const { computerId, run } of running) {
      if (run?.drive !== undefined) drives.#wanted.add(computerId, run.drive);
    }
    // The first computer that starts does not wait for it.
    if (drives.#missing === undefined)
      drives.#keeper.ensure().catch((err) => log('warn', { err }, 'The program for drives did not start'));
    drives.#keeper.lookLater(0);
    return drives;
  }

  async #listen(path: string): Promise<void> {
    if (this.#server === undefined) return;
    rmSync(path, { force: true });
    this.#server.listen(path);
    await once(this.#server, 'listening');
    chmodSync(path, 0o600);
  }

  /** Makes the places for the drive of a computer that is about to start. It starts without a drive if that fails. */
  async prepare(
    record: ComputerRecord,
    { spec }: ComputerRun,
    driver: Pick<Driver, 'name' | 'hasDrive'>,
  ): Promise<DriveMount | undefined> {
    const { computerId } = record;
    const { layout, log } = this.#deps;
    if (spec.drive === undefined) return undefined;
    const refused =
      this.#missing ?? (driver.hasDrive === true ? undefined : `computers of the driver ${driver.name} do not have it`);
    const place =
      refused === undefined ? await this.#place(record) : { refused: `Its host cannot give it the drive: ${refused}.` };
    if ('refused' in place) {
      this.#wanted.tell(computerId, { ...nothing, error: place.refused });
      return undefined;
    }
    const { moved, ...mount } = place;
    if (moved !== undefined)
      log('info', { computerId, moved }, 'What a computer had at the place of its drive was renamed');
    const { driveSocket: syncSocket } = computerLayout(layout, computerId);
    // While the sandbox is made. Without an answer, the daemon asks itself.
    this.#roots.set(computerId, this.#root(computerId));
    return { ...mount, spaceId: spec.spaceId, name: spec.drive.name, syncSocket };
  }

  async #place(record: ComputerRecord): Promise<DrivePlace | { refused: string }> {
    const { layout, log } = this.#deps;
    try {
      // It may have ended while the daemon was dead.
      await removeDeadMount(computerLayout(layout, record.computerId).drive);
      return prepareDrive(layout, record);
    } catch (error) {
      log('error', { err: error, computerId: record.computerId }, 'There is no place for the drive of a computer');
      return { refused: 'Its host could not make a place for the drive.' };
    }
  }

  /** Gives up a mount whose daemon does not answer, so that the programs that wait there can end. */
  async abort(computerId: string): Promise<void> {
    if (!this.#wanted.has(computerId)) return;
    this.#deps.log('error', { computerId }, 'Programs wait for the drive of a computer that ends; it is taken away');
    await takeAway(computerLayout(this.#deps.layout, computerId).drive);
  }

  /**
   * Whether a sandbox sees what is mounted after its beginning. If not, its drive is mounted before, and one whose
   * daemon was killed is back with the next start.
   */
  get follow(): boolean {
    return isRoot();
  }

  /** Mounts the drive, once the sandbox with this first process can see that. Does not reject. */
  mount(computerId: string, mount: DriveMount, init?: number): Promise<void> {
    const mounting = this.#mount(computerId, mount, init).finally(() => this.#mounting.delete(computerId));
    this.#mounting.set(computerId, mounting);
    return mounting;
  }

  async #mount(computerId: string, mount: DriveMount, init?: number): Promise<void> {
    this.#wanted.add(computerId, mount);
    try {
      const isReady = () => init === undefined || seesDrive(init);
      await Promise.all([this.#keeper.ensuring, lookUntil(isReady, Boolean, { firstMs: 1, forMs: bindMs })]);
      const root = await this.#roots.get(computerId);
      await this.#keeper.put(computerId, { ...mount, root }).catch(async () => {
        await this.#keeper.ensure();
        await this.#keeper.put(computerId, mount);
      });
    } catch (error) {
      this.#wanted.failed(computerId, error);
    }
    this.#roots.delete(computerId);
    this.#keeper.lookLater(0);
  }

  /** Unmounts the drive of a computer that has ended. Does not reject. */
  async unmount(computerId: string): Promise<void> {
    // Its start may have failed at something else.
    await this.#mounting.get(computerId);
    this.#roots.delete(computerId);
    if (!this.#wanted.delete(computerId)) return;
    const { layout, log } = this.#deps;
    const { drive } = computerLayout(layout, computerId);
    try {
      await this.#keeper.takeDown(computerId, unmountMs);
      const left = (await this.#daemon.state())?.mounts.find((mount) => mount.computerId === computerId);
      const { pendingFiles = 0, error } = left ?? {};
      this.#wanted.tell(computerId, { access: null, pendingFiles, error: error || null });
    } catch (error) {
      log('warn', { err: error, computerId }, 'The drive of a computer that has ended could not be unmounted');
      await removeDeadMount(drive)
        .then(() => ifThere(() => rmdirSync(drive)))
        .catch(() => undefined);
      this.#wanted.tell(computerId, nothing);
    }
  }

  /** Stops looking after the mounts, which stay. With `end`, also ends the daemon. */
  async close({ end }: { end: boolean }): Promise<void> {
    await this.#keeper.close();
    const state = await this.#daemon.state().catch(() => undefined);
    if (state !== undefined && (end || !state.mounts.some(({ mounted }) => mounted))) await this.#daemon.end(state);
    this.#server?.close();
    this.#server?.closeAllConnections();
    if (end) await unshareMounts(this.#deps.layout);
  }

  async #root(computerId: string): Promise<DriveRoot | undefined> {
    return this.#deps.options.backend?.root(computerId).catch(() => undefined);
  }
}
