/** The limits of a computer. Except `maxLogBytes`, each holds for everything in it together. */
export interface ComputerLimits {
  /** In thousandths of a core. */
  cpuMilli: number;
  memoryMiB: number;
  /** The size of its home. Temporary files count as memory. */
  diskMiB: number;
  maxTasks: number;
  /** How many processes started from outside may run at once. */
  maxProcesses: number;
  /** The length of each process's output. The middle of a longer one is dropped. */
  maxLogBytes: number;
}

/** A host's order to run a computer. One generation is started once, even if the order is repeated. */
export interface ComputerSpec {
  computerId: string;
  spaceId: string;
  /** Counts the starts. Messages of older generations are ignored. */
  generation: number;
  limits: ComputerLimits;
  /** Undefined: the host's first driver. */
  driver?: DriverName;
  env: Record<string, string>;
  /** A computer that has no files yet begins with this base as its root file system. */
  base?: BaseName;
  /** With `base`: the image whose files it begins with, by its digest, instead of those of the base. */
  image?: string;
  /** With a root file system of its own: the user of its processes (undefined: root), and where they start. */
  user?: string;
  workdir?: string;
  /** Set if the drive of its space is in its home, with the name by which its changes are known there. */
  drive?: { name: string };
}

/**
 * A root file system that hosts can make. A computer that began with one has its root file system where others have
 * their home, with the home in it at /home/user, and its processes may be root.
 */
export type BaseName = 'debian';

/** What a host can make root file systems from: a base, or the images of registries. */
export type RootSource = BaseName | 'image';

/** What an image says of the processes that it is made for. */
export interface ImageConfig {
  /** As `NAME=value`. */
  env: string[];
  workdir: string;
  /** By name or number, with a group if it names one. Empty: root. */
  user: string;
  /** Instructions that say how a container starts, such as `CMD`. */
  starts: string[];
}

export type DriverName = 'bubblewrap' | 'gvisor' | 'docker';

/** The state of a computer on its host. `gone`: a home in which nothing runs. `absent`: not even a home. */
export type HostedState =
  | {
      state: 'running' | 'paused';
      generation: number;
      startedAt: string;
      lastActiveAt: string;
      runningProcesses: number;
    }
  | { state: 'gone'; code?: 'COMPUTER_NOT_ANSWERING' | 'HOST_FAILED' }
  | { state: 'absent' };

/** What the processes of a computer use. */
export interface ProcessUsage {
  cpuSeconds: number;
  memoryBytes: number;
  memoryPeakBytes: number;
  tasks: number;
  /** How often a process was killed because the memory limit was reached. */
  oomKills: number;
}

export interface ComputerMetrics extends ProcessUsage {
  diskBytes: number;
  /** The size of its processes' logs on the host's disk, beside its home. */
  logBytes: number;
}

/** Files whose content is checked when a process starts. */
export interface ExpectedFiles {
  /** Absolute, or relative to the home. */
  folder: string;
  /** The SHA-256 of each file's content in hex, by the file's path below the folder. */
  sha256: Record<string, string>;
}

/** A request to start a process. The caller gives the id, so a repeated request starts it once. */
export interface StartProcess {
  processId: string;
  /** A string is run by the shell, a list directly. */
  command: string | string[];
  /** Absolute, or relative to the home. */
  cwd?: string;
  env?: Record<string, string>;
  /** Defaults for variables that neither the computer nor `env` sets. */
  usualEnv?: Record<string, string>;
  pty?: { cols: number; rows: number };
  /** Whether input comes later. Otherwise the standard input is `stdin`, or empty. */
  input?: boolean;
  /** The beginning of the standard input, in base64. */
  stdin?: string;
  /** After this time the process is killed with everything that it started. */
  timeoutMs?: number;
  /**
   * Whether this is one of Atrium's own processes that only looks. Such processes leave slots to those that change
   * something.
   */
  isLook?: boolean;
  /**
   * Whether it has secrets that other processes of the computer must not read. If the driver supports it, only this
   * process and its children see each other, and all end with it.
   */
  isPrivate?: boolean;
  /** Its sandbox checks these files right before the start, and refuses the start if one has other content. */
  files?: ExpectedFiles;
}

/** `lost`: its computer or host ended without recording its end. */
export type ProcessState = 'running' | 'exited' | 'killed' | 'lost';

export interface ProcessInfo {
  processId: string;
  command: string | string[];
  cwd: string;
  pty: { cols: number; rows: number } | null;
  state: ProcessState;
  exitCode: number | null;
  signal: string | null;
  /** Why it was killed, unless a caller's signal did it. */
  killedBy: 'timeout' | 'memory' | 'stop' | null;
  startedAt: string;
  endedAt: string | null;
  /** The bytes that it has written, and how many of them are not kept. */
  outputBytes: number;
  droppedBytes: number;
}

export type OutputKind = 'stdout' | 'stderr' | 'pty' | 'resize' | 'gap' | 'exit';

/** One record of a process's log. `position` is the number of output bytes before it. */
export interface OutputRecord {
  kind: OutputKind;
  position: number;
  /** Output as it was written. JSON for `resize`, `gap` and `exit`. */
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
  /** The name's bytes in base64, if they are not UTF-8. `name` then only resembles them. */
  nameBytes?: string;
}
