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
   * `files` is a short-lived sandbox on the home of a stopped computer: it starts no processes and has no network.
   * `work` is one that starts processes, and has no network either.
   */
  purpose: 'computer' | 'files' | 'work';
  /**
   * Whom to become (setgroups([]), setgid, setuid) before anything else is touched, when the host is root. Nothing below
   * the checkout, and of the computer's folders only these, can be read from then on: import what is needed before.
   */
  become: { uid: number; gid: number } | null;
  /** Where it serves HTTP, mode 0600. What an earlier holder left there is replaced. */
  socketPath: string;
  /** The process store's folder. It outlives holders. */
  processesDir: string;
  endFile: string;
  sandbox: SandboxSource;
  cgroups: HolderCgroups | null;
  /** The unix socket of this computer's egress proxy; null where it has no way out. */
  egressSocket: string | null;
  settings: HolderSettings;
}

export type SandboxSource = SandboxCommand | ContainerSource;

/** A container that the host has created and will start: the holder attaches to it while it may still reach the engine. */
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
   * A pipe each, from descriptor 3 on: `write` gets these bytes (base64) and its end at once; `info` is read, JSON with
   * `child-pid`; one byte into `block` lets the sandbox go on.
   */
  descriptors: ({ kind: 'write'; data: string } | { kind: 'info' } | { kind: 'block' })[];
  /** Where the sandbox sees the home, and the variables that every process gets beside the computer's own. */
  home: string;
  env: Record<string, string>;
  /** How to make a cell beside it; undefined where processes cannot be kept apart from each other. */
  cell?: CellCommand;
  /** The folder into which the holder writes, before it spawns this, what it shows of the machine. */
  view?: string;
}

/**
 * How to make a cell: a sandbox for a process whose variables and memory the computer's other processes must not see.
 * It is spawned like the computer's own, `command` in the user and network namespace around that one, by `nsenter`.
 */
export interface CellCommand extends Pick<SandboxCommand, 'descriptors' | 'home' | 'env'> {
  nsenter: string;
  command: string[];
}

/**
 * A computer's cgroups: `agent` for the sandbox itself, `work` for what it starts, so that neither a fork bomb nor the
 * OOM killer takes the agent. The host puts the sandbox into `agent`; `WorkSettler` (host/cgroups) moves what has been
 * started since to `work`, and the holder calls it after each start.
 */
export interface HolderCgroups {
  /** Null where a sandbox is one whole, whose processes nobody outside can tell apart. */
  settle: SettleFiles | null;
  /** Has a line `oom_kill N`. */
  workOom: string;
}

export interface SettleFiles {
  /** Lists the pids in `agent`. */
  agentProcs: string;
  /** Each is written a pid to move it; several in cgroups v1. Cells are moved here too, from the holder's. */
  workProcs: string[];
}

interface HolderSettings {
  /** The agent must have said that it is ready by then. */
  agentStartTimeoutMs: number;
  /** After SIGTERM to the holder, processes get SIGTERM, and this much later SIGKILL, with `killedBy: 'stop'`. */
  stopGraceMs: number;
  /** A holder of a short-lived sandbox ends after this long without a request. */
  idleTimeoutMs: number;
  /** No process runs longer, whatever it was given; as long as it was given, if undefined. */
  longestMs?: number;
}

export type HolderReport =
  | {
      type: 'blocked';
      /** Null where they are no processes of the holder’s. */
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
  /** As in `HolderCgroups`, where it is known only now. */
  workOom?: string;
}

export type HolderOrder = ReleaseOrder | { type: 'open' };

/** Why a holder has ended. */
export interface HolderEnd {
  generation: number;
  /** For a person, in one line. */
  reason: string;
  /** What the host has ended it for, where people are to be told that and not only its operator. */
  code?: 'COMPUTER_NOT_ANSWERING';
  at: string;
}

/** Where a sandbox sees, read-only, the folder with what `prepareAgent` has put there. */
export const agentFolder = '/opt/atrium';

/** The folder beside the holder's program in which spare holders rehearse. */
export const rehearsalsFolder = 'rehearsals';
