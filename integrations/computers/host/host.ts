import type { DockerOptions } from '../drivers/docker/driver.ts';
import type { RefusedDriver } from '../drivers/driver.ts';
import type { HostClient } from '../hostClient.ts';
import type { HolderEnd } from '../protocol/holderSpec.ts';
import type { ComputerLimits, ComputerMetrics, ComputerSpec, DriverName, HostedState } from '../types.ts';
import type { FileLimits } from './files/filePlaces.ts';
import type { SandboxWork } from './files/fileSandboxes.ts';
import type { HostLimits } from './machine/machine.ts';

export interface HostOptions {
  /** Where it keeps everything; made where it is missing. As root, other users must be able to enter it. */
  dir: string;
  /** Those that it is to have, where its machine has them; all, if undefined. */
  drivers?: readonly DriverName[];
  /** gVisor’s program, where it is not on the system’s own path. */
  runsc?: string;
  docker?: DockerOptions;
  /** Of all homes together, where they are an image; four fifths of what is free, if undefined. */
  imageMiB?: number;
  /** Of all computers together; what the machine has but a tenth, if undefined, and never more. */
  memoryMiB?: number;
  /** How many sandboxes may be open on homes of computers that do not run. */
  files?: Partial<FileLimits>;
  /** The same, of those in which something is run. */
  work?: Partial<FileLimits>;
  /** How many holders wait, started, for the next computer. */
  spareHolders?: number;
  /** Of the host, shown to every computer read-only. Asked at each start. */
  readOnly?: (spec: ComputerSpec) => { from: string; to: string }[];
  /** The way out of computers: opened before one starts, and when one is taken over; closed when it has ended. */
  egress?: HostEgress;
  /**
   * Before what runs on a computer is asked to end with it: for what Atrium itself runs there and ends in a way of its
   * own, within `closeMs`.
   */
  beforeEnd?: (client: HostClient, signal: AbortSignal) => Promise<void>;
  /** Told when a computer has ended unasked. */
  onEnd?: (computerId: string, end: HolderEnd) => void;
  log?: (level: 'info' | 'warn' | 'error', facts: Record<string, unknown>, message: string) => void;
  deadlines?: Partial<HostDeadlines>;
  /** To be less than the machine allows; for tests of what is then off. */
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
  /** For killing and clearing up what a computer has left. */
  clearMs: number;
  freezeMs: number;
  /** How long what is run beside a computer that does not run may take: others wait for its place. */
  workMs: number;
  /** How often it looks whether holders live, and what watched homes use. */
  watchMs: number;
  /** How often it asks a holder and its agent for an answer, and after how long without one their computer is ended. */
  askMs: number;
  silentMs: number;
  /** After which it looks for a driver again that is not there; then after twice as long, and so on up to `driverMostMs`. */
  driverMs: number;
  driverMostMs: number;
}

/** What holds on this machine. Each that does not is named in `off`, with what to do. */
export interface HostRights {
  /** A user of its own for each computer. */
  users: boolean;
  /** Limits of CPU, memory and tasks. */
  cgroups: boolean;
  /** Whether the file system keeps a home within its limit; else it is looked at from time to time. */
  diskLimits: boolean;
  off: string[];
}

/**
 * Runs computers on this machine. All of it may be asked for twice, at once, or again after this process was killed:
 * what is so already is an answer. Failures are {@link HostError}s.
 */
export interface Host {
  /** Stays the same for this folder. */
  readonly hostId: string;
  /**
   * What computers can be started with here now; the first is what one gets that does not say. One that is not there at
   * the start is looked for again from time to time.
   */
  readonly drivers: readonly DriverName[];
  /** Those that it is to have and does not have now, with the reason and what to do. */
  readonly refused: readonly Pick<RefusedDriver, 'name' | 'refused'>[];
  readonly rights: HostRights;
  /** What all of its computers may have together. */
  readonly limits: HostLimits;
  /**
   * Starts this generation, after ending an older one. One that runs already answers as when it was started; one that
   * has run and ended is not started again (`GENERATION_ENDED`).
   */
  start(spec: ComputerSpec): Promise<{ startedAt: string }>;
  /** Ends its processes, politely and then not. The home and the logs stay. With a generation, only up to that one. */
  stop(computerId: string, options?: { generation?: number; graceMs?: number }): Promise<void>;
  pause(computerId: string): Promise<void>;
  resume(computerId: string): Promise<void>;
  /** Ends it and removes its home and logs, whatever state it is in. */
  destroy(computerId: string): Promise<void>;
  /** Makes the home of a new computer as that of `from` is now. Nothing runs in it. With the signal it is given up. */
  fork(from: string, to: { computerId: string; limits: ComputerLimits }, signal?: AbortSignal): Promise<void>;
  metrics(computerId: string): Promise<ComputerMetrics>;
  inspect(computerId: string): Promise<HostedState>;
  list(): Promise<{ computerId: string; hosted: HostedState }[]>;
  /** Ends and removes what nobody owns: half-made computers, leftover processes and cgroups. Says what that was. */
  sweep(): Promise<string[]>;
  /** To the holder of a running computer. */
  client(computerId: string): HostClient;
  /**
   * To the files of a computer, running or not: of a stopped one through a sandbox that ends by itself, of which there
   * are few. Throws 429 or 503 `FILES_BUSY`.
   */
  files(computerId: string): Promise<HostClient>;
  /**
   * The same, where Atrium’s own processes (`HostClient.own`) may be started too: a stopped computer’s have no network, and
   * end when it starts.
   */
  work(computerId: string): Promise<HostClient>;
  /** The socket of what answers `files` or `work`; with `running`, only that of one that runs. */
  socket(computerId: string, options?: { running?: boolean; purpose?: SandboxWork }): Promise<string>;
  /** Stops looking after the computers, which go on. */
  close(): Promise<void>;
  /** Stops every computer, and gives back what was mounted. */
  shutdown(): Promise<void>;
}
