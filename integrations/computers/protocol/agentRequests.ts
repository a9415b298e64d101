import type { ExpectedFiles } from '../types.ts';

/** Environment variable of a process. Its descendants inherit it unless a program removes it. */
export const processMarker = 'ATRIUM_PROCESS_ID';

/** The requests with which a holder opens a stream to its agent. Paths are bytes in base64. */
export type AgentRequest =
  | ProcessRequest
  | { kind: 'signal'; processId: string; signal: string }
  | { kind: 'resize'; processId: string; cols: number; rows: number }
  /** Opens the network, and answers with the `faults`: what the agent could not listen on, and why. */
  | { kind: 'network'; ports: readonly number[]; maxConnections: number }
  | { kind: 'ping' }
  | { kind: 'port'; port: number }
  | { kind: 'socket'; path: string }
  | FileRequest;

export interface ProcessRequest {
  kind: 'process';
  processId: string;
  command: string | string[];
  cwd: string;
  env: Record<string, string>;
  pty: { cols: number; rows: number } | null;
  /** Whether the stream carries input. If not, standard input is empty. */
  input: boolean;
  /** Its folder is absolute. Null if no files are checked. */
  files: ExpectedFiles | null;
  /** The user who runs it. Empty: the agent's own. */
  user: string;
  /** Whether the holder moves it to another cgroup. A process with a user waits for that. */
  isMoved: boolean;
}

export interface ReadRequest {
  start?: number;
  end?: number;
  /** Reads only this many bytes at the end of the file. */
  suffix?: number;
}

export interface WriteRequest {
  mode?: number;
  parents?: boolean;
  ifMatch?: string;
  ifNew?: boolean;
}

export type FileRequest =
  | ({ kind: 'file.read'; path: string } & ReadRequest)
  | ({ kind: 'file.write'; path: string } & WriteRequest)
  | { kind: 'file.stat'; path: string }
  | { kind: 'file.list'; path: string; after?: string; limit: number }
  | { kind: 'file.delete'; path: string; recursive: boolean }
  | { kind: 'file.move'; path: string; to: string; replace: boolean }
  | { kind: 'file.folder'; path: string; parents: boolean };

/** Streams that the agent opens: `ready` once, when it takes requests, and `egress` for each outgoing connection. */
export type HolderRequest = { kind: 'ready' } | { kind: 'egress' };

/** How a process ended, as the agent saw it. */
export interface LeaderExit {
  exitCode: number | null;
  signal: string | null;
}

/** A refusal of the agent, with the code that the caller gets. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}
