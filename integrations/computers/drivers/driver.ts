import type { CgroupRoots } from '../host/confinement/cgroupRoots.ts';
import type { Confinement } from '../host/confinement/confinement.ts';
import type { OwnView } from '../host/machine/machine.ts';
import type { ComputerRecord } from '../host/records.ts';
import type { AgentCommands, ReleaseOrder, SandboxSource } from '../protocol/holderSpec.ts';
import type { ComputerLimits, DriverName } from '../types.ts';

/** A sandbox that is about to be made. */
export interface SandboxOrder {
  /** Its `computerId` is the name by which the confinement knows it. */
  record: ComputerRecord;
  /** Of the computer, on this host: a folder for what is only its host’s, and its home. */
  computerDir: string;
  homeDir: string;
  /** What its holder shows it as its machine is written here. */
  viewDir: string;
  limits: ComputerLimits;
  /** Files or folders of the host that it sees read-only, such as a certificate bundle. */
  readOnly: { from: string; to: string }[];
}

/**
 * What makes sandboxes, and what holds together the processes in them. Whichever it is, the first process inside is the
 * agent, which does what its holder asks for over its standard input and output.
 */
export interface Driver {
  readonly name: DriverName;
  readonly confinement: Confinement;
  /** What the holder is told to make, or to attach to. Of what this makes itself, the confinement removes the rest. */
  sandbox(order: SandboxOrder): SandboxSource | Promise<SandboxSource>;
  /** The sandbox is there, and within its limits; nothing in it has run yet. */
  beforeRelease?(record: ComputerRecord): Promise<Pick<ReleaseOrder, 'workOom'>>;
  /** It has been let go: the agent starts meanwhile, but no program of its tenant’s runs before this is done. */
  beforeOpen?(record: ComputerRecord): Promise<void>;
}

/** What drivers find on the machine, and share. */
export interface DriverSetting {
  hostId: string;
  /** Where programs for sandboxes are kept, which every user may read. */
  runtimeDir: string;
  agentDir: string;
  /** What sandboxes have of /etc, as `writeEtc` has written it. */
  etcDir: string;
  agent: AgentCommands;
  /** Of one of the computers; undefined where they share ours. */
  firstUid: number | undefined;
  confinement: Confinement;
  /** Undefined where a holder has no mounts of its own. */
  ownView: OwnView | undefined;
  /** Where there are cgroups, which the confinement uses. */
  roots: CgroupRoots | undefined;
}

/** Why this machine does not have a driver, with what to do. */
export interface RefusedDriver {
  name: DriverName;
  refused: string;
  /** What it needs is set up, and does not answer now. */
  isAway?: boolean;
}

export type OpenedDriver = Driver | RefusedDriver;
