import type { EngineAddress } from '../drivers/docker/engine.ts';
import type { ComputerSpec } from '../types.ts';

/**
 * The seam between a host and the holders that it starts.
 *
 * A host starts `holder/main.ts` detached, with an empty environment, its standard input a pipe, descriptor 3 a pipe for
 * reports, standard output and error to a log. What is said over the two pipes is JSON, one message a line:
 *
 *     host → holder   HolderSpec                (a spare holder waits for it; the end of the pipe before it: exit)
 *     holder → host   { type: 'blocked' }       the sandbox exists and waits at its block descriptor
 *     host → holder   { type: 'release' }       its limits hold: let it go on, so that its agent starts
 *     host → holder   { type: 'open' }          its network is ready too: let programs run
 *     holder → host   { type: 'running' }       the socket listens; the agent may still be starting
 *     holder → host   { type: 'failed' }        instead of any of these; the holder ends by itself after it
 *
 * After `running` the host closes both pipes and may die; a holder goes on without it. If they close before, the holder
 * kills its sandbox and ends. Whenever it ends it leaves `HolderEnd` in `endFile` as well as it can.
 */
export interface HolderSpec {
  computer: ComputerSpec;
  /**
   * `files`: a short-lived sandbox on the home of a stopped computer, which starts no processes and has no network.
   * `work`: the same, but it starts processes.
   */
  purpose: 'computer' | 'files' | 'work';
  /**
   * The user to become (setgroups([]), setgid, setuid) before anything else is touched, when the host is root. From
   * then on nothing below the checkout, and of the computer's folders only these, can be read: import everything
   * before.
   */
  become: { uid: number; gid: number } | null;
  /** The socket on which it serves HTTP, mode 0600. An earlier holder's socket is replaced. */
  socketPath: string;
  /** The process store's folder, which outlives holders. */
  processesDir: string;
  endFile: string;
  sandbox: SandboxSource;
  cgroups: HolderCgroups | null;
  /** The unix socket of this computer's egress proxy. Null where it has no way out. */
  egressSocket: string | null;
  settings: HolderSettings;
}

export type SandboxSource = SandboxCommand | ContainerSource;

/**
 * A container that the host has created and will start. The holder attaches to it while it may still reach the engine.
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
   * JSON with `child-pid`; one byte into `block` lets the sandbox go on.
   */
  descriptors: ({ kind: 'write'; data: string } | { kind: 'info' } | { kind: 'block' })[];
  /** The home's path inside, and variables of every process beside the computer's own. */
  home: string;
  env: Record<string, string>;
  /** How to make a cell beside it. Undefined where processes cannot be kept apart. */
  cell?: CellCommand;
  /** The folder for the view of the machine, which the holder writes before it makes the sandbox. */
  view?: string;
}

/**
 * How to make a cell: a sandbox for a process whose variables and memory the computer's other processes must not see.
 * It is made like the computer's own, with `command` in the user and network namespace around that one, by `nsenter`.
 */
export interface CellCommand extends Pick<SandboxCommand, 'descriptors' | 'home' | 'env'> {
  nsenter: string;
  command: string[];
}

/**
 * A computer's cgroups: `agent` for the sandbox itself and `work` for its programs, so that neither a fork bomb nor the
 * OOM killer takes the agent. The host puts the sandbox into `agent`. After each start the holder calls `WorkSettler`
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
  /** After SIGTERM to the holder, processes get SIGTERM, and this much later SIGKILL, with `killedBy: 'stop'`. */
  stopGraceMs: number;
  /** How long a short-lived sandbox stays without a request. */
  idleTimeoutMs: number;
  /** The longest time that a process may run, whatever its own timeout. Unlimited, if undefined. */
  longestMs?: number;
}

export type HolderReport =
  | {
      type: 'blocked';
      /** Null where the engine, not the holder, starts the processes. */
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
  /** As in `HolderCgroups`, where it is only known now. */
  workOom?: string;
}

export type HolderOrder = ReleaseOrder | { type: 'open' };

/** Why a holder has ended. */
export interface HolderEnd {
  generation: number;
  /** The reason for a person, in one line. */
  reason: string;
  /** A code for users, where the host has ended the computer for a reason that they should know. */
  code?: 'COMPUTER_NOT_ANSWERING';
  at: string;
}

/** The folder inside a sandbox, read-only, with the agent's files (`prepareAgent`). */
export const agentFolder = '/opt/atrium';

/** The folder beside the holder's program in which spare holders rehearse. */
export const rehearsalsFolder = 'rehearsals';
