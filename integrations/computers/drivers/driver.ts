import type { CgroupRoots } from '../host/confinement/cgroupRoots.ts';
import type { Confinement } from '../host/confinement/confinement.ts';
import type { OwnView } from '../host/machine/machine.ts';
import type { ComputerRecord } from '../host/records.ts';
import type { ReleaseOrder, SandboxSource, SystemMount } from '../protocol/holderSpec.ts';
import type { ComputerLimits, DriverName } from '../types.ts';
import type { Machine } from './seccomp/syscalls.ts';

/** Files or folders of the host that a sandbox sees read-only, such as a certificate bundle. */
export type ReadOnlyFiles = { from: string; to: string }[];

/** Options that every driver needs to build a sandbox's command. */
export interface SandboxOptions<Limits = ComputerLimits> {
  machine: Machine;
  /** The home's path on this host. */
  homeDir: string;
  /** The host folder that the sandbox sees at `agentFolder`. */
  agentDir: string;
  /** The folder that `writeEtc` has written. */
  etcDir: string;
  limits: Limits;
  readOnly: ReadOnlyFiles;
  /** The command to run, with paths as seen inside. */
  command: string[];
}

export interface SandboxOrder {
  /** Its `computerId` is the sandbox's name in the confinement. */
  record: ComputerRecord;
  /** The computer's folders on this host: one that only the host uses, and its home. */
  computerDir: string;
  homeDir: string;
  /** Its holder writes the view of the machine into this folder. */
  viewDir: string;
  limits: ComputerLimits;
  readOnly: ReadOnlyFiles;
  /** Its root file system, if it has one of its own. Then `homeDir` is not used. */
  system?: SystemMount;
  /** The folder of the host that it sees as the drive of its space, and the mount in which that folder is. */
  drive?: DriveFolder;
}

export interface DriveFolder {
  folder: string;
  mount: string;
}

/**
 * Makes sandboxes and confines their processes. The first process inside is always the agent, which takes its holder's
 * requests over its standard input and output.
 */
export interface Driver {
  readonly name: DriverName;
  readonly confinement: Confinement;
  /** Whether its sandboxes see the drive of their space, also if that is mounted after their beginning. */
  readonly hasDrive?: boolean;
  /** Returns what the holder makes or attaches to. The confinement removes what the driver itself has made. */
  sandbox(order: SandboxOrder): SandboxSource | Promise<SandboxSource>;
  /** Called when the sandbox exists and is within its limits. Nothing in it has run yet. */
  beforeRelease?(record: ComputerRecord): Promise<Pick<ReleaseOrder, 'workOom'>>;
  /**
   * Called when the sandbox is released. The agent starts meanwhile, but no program of the tenant runs before this
   * settles.
   */
  beforeOpen?(record: ComputerRecord): Promise<void>;
}

/** Settings that all drivers of a machine share. */
export interface DriverSetting {
  hostId: string;
  /** The folder of programs for sandboxes, which every user may read. */
  runtimeDir: string;
  agentDir: string;
  /** The sandboxes' /etc, as `writeEtc` has written it. */
  etcDir: string;
  /** The agent's command line. */
  agent: string[];
  /** A computer's uid, for trials. Undefined if computers share our user. */
  firstUid: number | undefined;
  confinement: Confinement;
  /** Undefined if holders have no mounts of their own. */
  ownView: OwnView | undefined;
  /** The cgroups that the confinement uses, if any. */
  roots: CgroupRoots | undefined;
}

/** Why this machine lacks a driver, and what to do. */
export interface RefusedDriver {
  name: DriverName;
  refused: string;
  /** The engine is set up but cannot be used now. */
  isAway?: boolean;
}

export type OpenedDriver = Driver | RefusedDriver;
