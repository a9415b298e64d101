import type { EngineAddress } from '../drivers/docker/engine.ts';
import type { ComputerSpec } from '../types.ts';

/**
 * The protocol between a host and the holders that it starts.
 *
 * A host starts `holder/main.ts` detached, with an empty environment. Standard input is a pipe for orders, descriptor 3
 * a pipe for reports, and standard output and error go to a log. Both pipes carry JSON, one message per line:
 *
 *     host → holder   HolderSpec                (a spare holder waits for it, and exits if the pipe ends first)
 *     holder → host   { type: 'blocked' }       the sandbox exists and waits at its block descriptor
 *     host → holder   { type: 'release' }       its limits hold: the agent may start
 *     host → holder   { type: 'open' }          its network is ready too: programs may run
 *     holder → host   { type: 'running' }       the socket listens; the agent may still be starting
 *     holder → host   { type: 'failed' }        instead of any of these; the holder then ends by itself
 *
 * After `running` the host closes both pipes and may die; the holder goes on without it. If the pipes close earlier,
 * the holder kills its sandbox and ends. When a holder ends, it tries to write a `HolderEnd` to `endFile`.
 */
export interface HolderSpec {
  computer: ComputerSpec;
  /**
   * `files`: a short-lived sandbox on the home of a stopped computer. It starts no processes and has no network.
   * `work`: the same, but it starts processes.
   */
  purpose: 'computer' | 'files' | 'work';
  /**
   * Set if the host is root: the user to become (setgroups([]), setgid, setuid) before the holder touches anything
   * else. After that it can read nothing below the checkout, and of the computer's folders only the ones below: import
   * everything before.
   */
  become: { uid: number; gid: number } | null;
  /** The socket on which the holder serves HTTP, mode 0600. Replaces the socket of an earlier holder. */
  socketPath: string;
  /** The process store's folder, which outlives holders. */
  processesDir: string;
  endFile: string;
  sandbox: SandboxSource;
  cgroups: HolderCgroups | null;
  /** The unix socket of this computer's egress proxy. Null if the computer has no egress. */
  egressSocket: string | null;
  /** The unix socket on which to wait until all that programs wrote is in the drive. Null if the computer has none. */
  driveSocket: string | null;
  settings: HolderSettings;
}

export type SandboxSource = SandboxCommand | ContainerSource;

/**
 * A container that the host has created and will start. The holder attaches before it gives up its access to the
 * engine.
 */
export interface ContainerSource extends Pick<SandboxCommand, 'home' | 'env'> {
  kind: 'container';
  engine: EngineAddress;
  containerId: string;
}

/** How to spawn the sandbox: `spawn(file, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'pipe', …descriptors] })`. */
export interface SandboxCommand {
  file: string;
  args: string[];
  /**
   * Each descriptor from 3 on is a pipe. `write` gets these bytes (base64) and is closed at once; `info` is read as
   * JSON with `child-pid`; one byte into `block` lets the sandbox go on. A line into `go` lets it begin at all.
   */
  descriptors: ({ kind: 'write'; data: string } | { kind: 'info' } | { kind: 'block' } | { kind: 'go' })[];
  /** The home's path inside, and the variables that every process gets besides the computer's own. */
  home: string;
  env: Record<string, string>;
  /** How to make a cell next to the sandbox. Undefined if this machine cannot isolate single processes. */
  cell?: CellCommand;
  /** The folder for the machine view. The holder writes it before the sandbox begins. */
  view?: string;
  /** Set if the sandbox has a root file system of its own. */
  system?: SystemMount;
}

/** How many users a sandbox with a root file system of its own has. */
export const usersOfSystem = 65_536;

/**
 * What a holder does as root for a sandbox with a root file system of its own, before the sandbox begins: it gives the
 * sandbox's user namespace a range of users, and mounts the files so that they belong to these.
 */
export interface SystemMount {
  /** The first user of the range, who is root inside. */
  firstUid: number;
  /** The folder with the files. On the disk they have the ids that are seen inside. */
  folder: string;
  /** Where it is mounted, in the holder's own mount namespace. */
  target: string;
  /** The command that does so: `mounter FOLDER TARGET FIRST_UID`. */
  mounter: string[];
}

/**
 * How to make a cell: a sandbox for a process whose variables and memory the computer's other processes must not see.
 * It is made like the computer's own sandbox. `nsenter` runs `command` in the user and network namespaces around that
 * one.
 */
export interface CellCommand extends Pick<SandboxCommand, 'descriptors' | 'home' | 'env'> {
  nsenter: string;
  command: string[];
}

/**
 * A computer's cgroups: `agent` for the sandbox itself and `work` for its programs, so that neither a fork bomb nor the
 * OOM killer hits the agent. The host puts the sandbox into `agent`. After each start the holder calls `WorkSettler`
 * (host/confinement), which moves new processes to `work`.
 */
export interface HolderCgroups {
  /** Null for a `whole` sandbox, whose processes cannot be told apart from outside. */
  settle: SettleFiles | null;
  /** A file with a line `oom_kill N`. */
  workOom: string;
}

export interface SettleFiles {
  /** The list of pids in `agent`. */
  agentProcs: string;
  /**
   * Files to which a pid is written to move it; several in cgroups v1. Cells are moved here too, from the holder's
   * cgroup.
   */
  workProcs: string[];
}

interface HolderSettings {
  /** How long the agent may take to become ready. */
  agentStartTimeoutMs: number;
  /** On SIGTERM the holder sends SIGTERM to its processes, and SIGKILL after this time, with `killedBy: 'stop'`. */
  stopGraceMs: number;
  /** How long a short-lived sandbox stays without a request. */
  idleTimeoutMs: number;
  /** The longest run time of a process, even if its own timeout is longer. Undefined: no limit. */
  longestMs?: number;
}

export type HolderReport =
  | {
      type: 'blocked';
      /** Null if the engine, not the holder, starts the processes. */
      pids: SandboxPids | null;
    }
  | { type: 'running'; startedAt: string }
  | { type: 'failed'; reason: string };

/** bwrap's own pid, and that of the first process in the sandbox, as the host sees them. */
export interface SandboxPids {
  monitor: number;
  init: number;
}

export interface ReleaseOrder {
  type: 'release';
  /** As in `HolderCgroups`, if it is known only now. */
  workOom?: string;
}

export type HolderOrder = ReleaseOrder | { type: 'open' };

/** Why a holder has ended. */
export interface HolderEnd {
  generation: number;
  /** The reason for a person, in one line. */
  reason: string;
  /** A code for users. Set if the host ended the computer for a reason that users should know. */
  code?: 'COMPUTER_NOT_ANSWERING' | 'HOST_FAILED';
  at: string;
}

/** The folder inside a sandbox, read-only, with the agent (`prepareAgent`). */
export const agentFolder = '/opt/atrium';

/** The folder beside the holder's program in which spare holders rehearse. */
export const rehearsalsFolder = 'rehearsals';
