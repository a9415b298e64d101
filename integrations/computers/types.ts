/** What a computer may use; each limit holds for everything that runs in it together. */
export interface ComputerLimits {
  /** In thousandths of a core. */
  cpuMilli: number;
  memoryMiB: number;
  /** Of its home. Temporary files count as memory. */
  diskMiB: number;
  maxTasks: number;
  /** How many processes may run at once that were started from outside. */
  maxProcesses: number;
  /** Of one process’s output; the middle of what is longer is dropped. */
  maxLogBytes: number;
}

/** A computer as a host is told to run it. The same generation is started once, whoever asks how often. */
export interface ComputerSpec {
  computerId: string;
  spaceId: string;
  /** Counts the starts: of a process or a message that belongs to an older one, nothing is believed. */
  generation: number;
  limits: ComputerLimits;
  /** What it is run with; the first that its host has, if undefined. */
  driver?: DriverName;
  /** Variables for every process. */
  env: Record<string, string>;
}

export type DriverName = 'bubblewrap' | 'gvisor' | 'docker';

/**
 * What a computer is on its host now. `gone` is a home without anything running; `absent` is no home either. A running
 * one tells its generation.
 */
export type HostedState =
  | {
      state: 'running' | 'paused';
      generation: number;
      startedAt: string;
      lastActiveAt: string;
      runningProcesses: number;
    }
  | { state: 'gone'; code?: 'COMPUTER_NOT_ANSWERING' }
  | { state: 'absent' };

export interface ComputerMetrics {
  /** Since its start. */
  cpuSeconds: number;
  memoryBytes: number;
  memoryPeakBytes: number;
  tasks: number;
  diskBytes: number;
  /** What the logs of its processes take on the host’s disk, beside its home. */
  logBytes: number;
  /** How often a process was ended because the memory limit was reached. */
  oomKills: number;
}

/** What starts a process. The caller gives the id, so that starting twice is starting once. */
export interface StartProcess {
  processId: string;
  /** A string is run by the shell; a list as it is. */
  command: string | string[];
  /** Absolute, or relative to the home. */
  cwd?: string;
  env?: Record<string, string>;
  /** What it has of these where neither the computer nor `env` says otherwise. */
  usualEnv?: Record<string, string>;
  pty?: { cols: number; rows: number };
  /** Whether input will come later; else its standard input is empty, or just `stdin`. */
  input?: boolean;
  /** In base64: what its standard input begins with. */
  stdin?: string;
  /** It is killed, with everything that it started, after this. */
  timeoutMs?: number;
  /** Whether it only looks, of what Atrium itself runs: those leave places to what changes something. */
  isLook?: boolean;
  /**
   * Whether it has been given what other processes of the computer must not read: it and what it starts are seen by
   * each other alone, where the driver can do so, and all of them end with it.
   */
  isPrivate?: boolean;
}

/** `lost`: its computer or host ended without a word about it. */
export type ProcessState = 'running' | 'exited' | 'killed' | 'lost';

export interface ProcessInfo {
  processId: string;
  command: string | string[];
  cwd: string;
  pty: { cols: number; rows: number } | null;
  state: ProcessState;
  exitCode: number | null;
  signal: string | null;
  /** Why it was killed, where it was not by its caller’s signal. */
  killedBy: 'timeout' | 'memory' | 'stop' | null;
  startedAt: string;
  endedAt: string | null;
  /** The bytes that it has put out, and those of them that are not kept. */
  outputBytes: number;
  droppedBytes: number;
}

export type OutputKind = 'stdout' | 'stderr' | 'pty' | 'resize' | 'gap' | 'exit';

/** One record of a process’s log. `position` is the number of output bytes before it. */
export interface OutputRecord {
  kind: OutputKind;
  position: number;
  /** Output as it was written; for `resize`, `gap` and `exit`, JSON. */
  payload: Uint8Array;
}

export interface FileEntry {
  name: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  /** Permission bits, such as 0o644. */
  mode: number;
  modifiedAt: string;
  /** Where a symlink points, unresolved. */
  target?: string;
  /** The name’s bytes, in base64, where they are no UTF-8: `name` then only resembles it. */
  nameBytes?: string;
}
