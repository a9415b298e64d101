import type { DockerOptions } from '../drivers/docker/driver.ts';
import type { RefusedDriver } from '../drivers/driver.ts';
import type { HostClient } from '../hostClient.ts';
import type { HolderEnd } from '../protocol/holderSpec.ts';
import type {
  BaseName,
  ComputerLimits,
  ComputerMetrics,
  ComputerSpec,
  DriverName,
  HostedState,
  ImageConfig,
  RootSource,
} from '../types.ts';
import type { DriveOptions } from './drives/drives.ts';
import type { FileLimits } from './files/filePlaces.ts';
import type { SandboxWork } from './files/fileSandboxes.ts';
import type { RegistryOptions } from './images/registries.ts';
import type { HostLimits } from './machine/machine.ts';

export interface HostOptions {
  /** The host's folder, made if it is missing. As root, other users must be able to enter it. */
  dir: string;
  /** The path of the agent's program, which `stack/` builds. */
  agent: string;
  /**
   * A folder for what hosts of this machine can share, such as fetched packages. Undefined: each host fetches its own.
   */
  cacheDir?: string;
  /** The wanted drivers, as far as the machine supports them. Undefined: all. */
  drivers?: readonly DriverName[];
  /** The path of gVisor's program. Undefined: it is looked for in the system's folders. */
  runsc?: string;
  docker?: DockerOptions;
  /** The registries whose images computers may begin with. Undefined: none. */
  registries?: RegistryOptions;
  /** The most MiB of the image with all homes. Undefined, and at most: four fifths of what the disk could give it. */
  imageMiB?: number;
  /** The memory of all computers together. Undefined: all but a tenth of the machine's, which is also the maximum. */
  memoryMiB?: number;
  /** How many sandboxes may be open on homes of computers that do not run. */
  files?: Partial<FileLimits>;
  /** The same for sandboxes in which Atrium runs programs. */
  work?: Partial<FileLimits>;
  /** How many started holders wait for the next computer. */
  spareHolders?: number;
  /** Files of the host that every computer sees read-only. Called at each start. */
  readOnly?: (spec: ComputerSpec) => { from: string; to: string }[];
  /** The computers' egress. Opened before a start and at a takeover, closed after the end. */
  egress?: HostEgress;
  /**
   * Called before a computer's processes are asked to end, so that Atrium's own processes there can end in their own
   * way, within `closeMs`.
   */
  beforeEnd?: (client: HostClient, signal: AbortSignal) => Promise<void>;
  /** The drives of spaces in computers. Undefined: computers have none. */
  drive?: DriveOptions;
  /** Called when a computer has ended without an order. */
  onEnd?: (computerId: string, end: HolderEnd) => void;
  log?: (level: 'info' | 'warn' | 'error', facts: Record<string, unknown>, message: string) => void;
  deadlines?: Partial<HostDeadlines>;
  /** For tests: does as if the machine lacked these. */
  without?: ('users' | 'cgroups' | 'image')[];
}

interface HostEgress {
  open(socket: {
    computerId: string;
    path: string;
    owner?: { uid: number; gid: number; draft: string };
  }): Promise<void>;
  close(computerId: string): Promise<void>;
}

export interface HostDeadlines {
  startMs: number;
  /** How long `beforeEnd` may take. */
  closeMs: number;
  /** How long processes have between SIGTERM and SIGKILL when their computer stops. */
  stopGraceMs: number;
  /** Time limit for killing and clearing up what a computer has left. */
  clearMs: number;
  freezeMs: number;
  /** How long a program beside a stopped computer may run, because others wait for its slot. */
  workMs: number;
  /** How often the host checks that holders live, and what watched homes use. */
  watchMs: number;
  /**
   * How often the host asks a holder and its agent for an answer, and after how long without one it ends the computer.
   */
  askMs: number;
  silentMs: number;
  /** When the host looks again for a missing driver. The time doubles up to `driverMostMs`. */
  driverMs: number;
  driverMostMs: number;
  /** How long a registry may say nothing. */
  registryMs: number;
}

/** Which guarantees hold on this machine. `off` names each one that does not, with advice. */
export interface HostRights {
  /** A user of its own for each computer. */
  users: boolean;
  /** Limits of CPU, memory and tasks. */
  cgroups: boolean;
  /** Whether the file system keeps each home within its limit. Otherwise the host checks from time to time. */
  diskLimits: boolean;
  off: string[];
  /** Why computers cannot have a root file system of their own. Undefined if they can. */
  noBases: string | undefined;
}

/**
 * Runs computers on this machine. Every call may be repeated, at the same time or after this process was killed: a call
 * whose work is already done just answers. Failures are {@link HostError}s.
 */
export interface Host {
  /** An id that belongs to the folder. */
  readonly hostId: string;
  /**
   * The drivers that are available now; the first is the default. The host looks for missing ones from time to time.
   */
  readonly drivers: readonly DriverName[];
  /** The wanted drivers that are missing now, with the reason and advice. */
  readonly refused: readonly Pick<RefusedDriver, 'name' | 'refused'>[];
  readonly rights: HostRights;
  /** The limits of all computers together. */
  readonly limits: HostLimits;
  /**
   * Starts this generation, after ending an older one. If the generation runs already, returns the time of its start.
   * An ended generation is not started again (`GENERATION_ENDED`).
   */
  start(spec: ComputerSpec): Promise<{ startedAt: string }>;
  /**
   * Asks the computer's processes to end, then kills them. The home and the logs stay. With a generation, only that one
   * or an older one is ended.
   */
  stop(computerId: string, options?: { generation?: number; graceMs?: number }): Promise<void>;
  pause(computerId: string): Promise<void>;
  resume(computerId: string): Promise<void>;
  /** Ends the computer in any state, and removes its home and logs. */
  destroy(computerId: string): Promise<void>;
  /** Makes the home of a new computer as a copy of `from`'s at this moment. Nothing runs in it. The signal cancels. */
  fork(from: string, to: { computerId: string; limits: ComputerLimits }, signal?: AbortSignal): Promise<void>;
  /** What computers of this host can begin with. Empty where the machine cannot run such computers. */
  readonly bases: readonly RootSource[];
  /**
   * Makes a base, unless this host has it. Computers with it cannot be made before. Takes minutes; a repeated call
   * begins anew. Throws `BASES_OFF`, `BASE_FAILED` or `DISK_FULL`.
   */
  prepareBase(base: BaseName, signal?: AbortSignal): Promise<void>;
  /** Asks a registry for an image. Returns its digest and its settings. Throws an {@link ImageErrorCode}. */
  resolveImage(image: string, signal?: AbortSignal): Promise<{ digest: string; config: ImageConfig }>;
  /** As `prepareBase`, for an image that is named by its digest. Throws an {@link ImageErrorCode} too. */
  prepareImage(image: string, signal?: AbortSignal): Promise<void>;
  readonly saves: HostSaves;
  metrics(computerId: string): Promise<ComputerMetrics>;
  inspect(computerId: string): Promise<HostedState>;
  list(): Promise<{ computerId: string; hosted: HostedState }[]>;
  /** Ends and removes strays: half-made computers, leftover processes and cgroups. Returns what was done. */
  sweep(): Promise<string[]>;
  /** A client of a running computer's holder. */
  client(computerId: string): HostClient;
  /**
   * A client of a computer's files, whether it runs or not. For a stopped one this opens a sandbox, of which there are
   * few. Throws 429 or 503 `FILES_BUSY`.
   */
  files(computerId: string): Promise<HostClient>;
  /**
   * Like `files`, but Atrium's own processes (`HostClient.own`) may be started too. Those of a stopped computer have no
   * network, and end when it starts.
   */
  work(computerId: string): Promise<HostClient>;
  /** The socket behind `files` or `work`. With `running`, only that of a running computer. */
  socket(computerId: string, options?: { running?: boolean; purpose?: SandboxWork }): Promise<string>;
  /** Stops managing the computers, which keep running. */
  close(): Promise<void>;
  /** Stops every computer, and unmounts the homes. */
  shutdown(): Promise<void>;
}

/**
 * What a host can do with saves. A save is the change of a home since its parent save, or a whole home. Its snapshot
 * stays on the host, once for all computers, until no computer uses it. Of one computer, one call runs at a time. On a
 * full disk, calls throw `DISK_FULL` and leave the computer and its earlier saves as they are.
 */
export interface HostSaves {
  /** How this host takes saves. */
  readonly format: SaveFormatName;
  /**
   * The computers whose homes have changed since their newest save here, or have none. Looks at all homes at once; with
   * the format `tar`, through all files.
   */
  changed(): Promise<string[]>;
  /** The saves of which the computer uses a snapshot. They can be read again, and be parents. With `tar`, none. */
  kept(computerId: string): string[];
  /** Whether the disk has no room for another home. */
  isFull(): boolean;
  /** Saves the home as it is now, unless this save was taken before. Holds up the computer for the snapshot only. */
  take(computerId: string, saveId: string): Promise<TakenSave>;
  /**
   * The bytes of a save that was taken here: what has changed since the parent, or all of it. A kept save has the same
   * bytes each time. Throws `SAVE_ABSENT`, `PATH_TOO_LONG`, and `SAVE_TOO_LARGE` after far more bytes than the home's
   * limit.
   */
  read(computerId: string, saveId: string, parentId: string | null, signal: AbortSignal): AsyncIterable<Buffer>;
  /** Forgets the computer's other saves, and removes those of their snapshots that nothing else uses. */
  keepOnly(computerId: string, saveIds: readonly string[]): Promise<void>;
  /** Keeps the snapshots that this host has of these saves although no computer uses them, until the next call. */
  keep(saveIds: readonly string[]): Promise<void>;
  /**
   * Makes the home of a computer from a whole home and the changes that follow it. What this host has a snapshot of is
   * not read. Until that is done, this host does not have the computer. The computer uses the snapshots then. Does
   * nothing if the home is there, unless it `replaces` that. Throws `NO_ROOM_FOR_HOME` if there is no room for that many
   * bytes, or `DISK_FULL` if the home is there, and `SAVE_UNREADABLE` if this host's file system does not have the
   * saves' format.
   */
  fill(computerId: string, chain: readonly StoredSave[], options: FillOptions): Promise<void>;
  /**
   * Forgets a fill that was not finished, for a computer that has no saves any more and begins with this base, or with
   * an empty home. Does nothing if this host has the computer.
   */
  forgetFill(computerId: string, base?: BaseName): Promise<void>;
}

/** `btrfs`: what has changed since another save, or a whole home. `tar`: always a whole home. */
export type SaveFormatName = 'btrfs' | 'tar';

export interface TakenSave {
  takenAt: Date;
  /** Null if it is a home, and no root file system. */
  base: BaseName | null;
  homeBytes: number;
  /** The owner of the home's files. Null if that is the host's own user. */
  uid: number | null;
  format: SaveFormatName;
}

export interface StoredSave extends Omit<TakenSave, 'takenAt' | 'base'> {
  saveId: string;
  open(signal: AbortSignal): AsyncIterable<Buffer>;
}

export interface FillOptions {
  limits: ComputerLimits;
  spaceId: string;
  signal: AbortSignal;
  /** Set if the saves are of a root file system. */
  base?: BaseName;
  /** Whether the home of a stopped computer is replaced. */
  replaces?: boolean;
  /** With `replaces`: whether the present home becomes the home in the root file system that replaces it. */
  keepsHome?: boolean;
}
