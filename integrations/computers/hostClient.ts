import type { Duplex, Readable } from 'node:stream';
import { DomainError } from '../../base/errors.ts';
import { followOutput } from './client/followOutput.ts';
import { type ComputerEndpoint, dial, Requests } from './client/requests.ts';
import { ownProcessesDir, ProcessStore } from './processes/processStore.ts';
import { positionAfter, type Size } from './processes/records.ts';
import { storedOutput } from './processes/storedLog.ts';
import type { FileEntry, OutputRecord, ProcessInfo, StartProcess } from './types.ts';

export type { ComputerEndpoint } from './client/requests.ts';

/** A path inside a computer, absolute or relative to the home. Bytes if it is not UTF-8. */
export type FilePath = string | Uint8Array;

export interface HolderStatus {
  computerId: string;
  generation: number;
  startedAt: string;
  agent: 'starting' | 'ready';
  runningProcesses: number;
  /** Whether the host has paused it. */
  isPaused: boolean;
  lastActiveAt: string;
}

export interface OutputRequest {
  /** The number of output bytes to skip. */
  after?: number;
  /** Whether to wait for output until the process ends. Otherwise only existing output is read. */
  follow?: boolean;
  signal?: AbortSignal;
}

/** The screen of a terminal, as bytes that draw it. Output from `position` on follows it. */
export interface Screen extends Size {
  position: number;
  data: string;
}

export interface InputNumber {
  /** The writer's name. Each writer counts its own inputs. */
  writer: string;
  /** Counts from 1. An input with a known number is not written again. */
  seq: number;
}

interface ProcessInput {
  /** Without a number, a repeated input is written again. */
  number?: InputNumber | undefined;
  bytes?: Uint8Array;
  /** Whether the standard input ends after this. */
  eof?: boolean;
}

interface ReadFileRequest {
  /** Both ends are inclusive, as in HTTP. Without an `end`, to the end of the file. */
  range?: { start: number; end?: number };
  signal?: AbortSignal;
}

export interface FileContent {
  /** The size of the whole file. */
  size: number;
  mode: number;
  modifiedAt: string;
  etag: string;
  /** The range that `body` has. Undefined if `body` is the whole file. */
  range: { start: number; end: number } | undefined;
  /** The caller destroys it if it does not read it to the end. */
  body: Readable;
}

export interface WriteFileRequest {
  mode?: number;
  parents?: boolean;
  /** Writes only if the file has this ETag, otherwise throws 412. */
  ifMatch?: string;
  /** Writes only if no file exists, otherwise throws 412. */
  ifNew?: boolean;
  signal?: AbortSignal;
}

interface FilePage {
  entries: FileEntry[];
  /** The cursor of the next page. Null on the last one. */
  nextCursor: string | null;
}

const fileDeadlineMs = 60_000;
const pausedDeadlineMs = 2_000;

/**
 * A client of one computer, by its holder's socket or its host's address. Refusals are `DomainError`s with the holder's
 * code. A stopped computer is 409 `COMPUTER_NOT_RUNNING`, a silent holder 504 `COMPUTER_NOT_ANSWERING`.
 */
export class HostClient {
  readonly #endpoint: ComputerEndpoint;
  readonly #requests: Requests;
  readonly #processes: string;

  constructor(endpoint: ComputerEndpoint, processes = '/processes') {
    this.#endpoint = endpoint;
    this.#requests = new Requests(endpoint);
    this.#processes = processes;
  }

  /** A client of the processes that Atrium itself runs on the computer. */
  get own(): HostClient {
    const { processesDir } = this.#endpoint as { processesDir?: string };
    const endpoint = { ...this.#endpoint, ...(processesDir && { processesDir: ownProcessesDir(processesDir) }) };
    return new HostClient(endpoint, '/own/processes');
  }

  status(): Promise<HolderStatus> {
    return this.#requests.json('GET', '/');
  }

  /** Settles when the holder's agent has answered. */
  async ping(): Promise<void> {
    await this.#requests.json('GET', '/ping');
  }

  /**
   * For the host: tells the holder that the computer was paused or resumed, so that time limits of processes follow.
   */
  async setPaused(isPaused: boolean): Promise<void> {
    await this.#requests.json('POST', '/paused', { json: { isPaused }, deadlineMs: pausedDeadlineMs });
  }

  /**
   * Starts a process, or attaches to the one with this id and command; `isNew` says which. Throws 409
   * `PROCESS_ID_TAKEN` if the id has another command and `FILES_CHANGED` if an expected file differs, 429
   * `TOO_MANY_PROCESSES`, 422 `CWD_NOT_FOUND`, `COMMAND_NOT_FOUND` or `COMMAND_NOT_STARTED`.
   */
  async startProcess(request: StartProcess): Promise<{ process: ProcessInfo; isNew: boolean }> {
    const { status, value } = await this.#requests.answer<ProcessInfo>('POST', this.#processes, { json: request });
    return { process: value, isNew: status === 201 };
  }

  /** All known processes, the newest first. */
  async listProcesses(): Promise<ProcessInfo[]> {
    const list = () => this.#requests.json<{ processes: ProcessInfo[] }>('GET', this.#processes);
    return this.#orStored(
      async () => (await list()).processes,
      (store) => store.list(),
    );
  }

  process(processId: string): Promise<ProcessInfo> {
    return this.#orStored(
      () => this.#requests.json('GET', this.#pathOf(processId)),
      (store) => store.info(processId),
    );
  }

  /**
   * A process's output from a position on. With `follow` it waits for more and ends after the `exit` record. A cut
   * connection is made again at the reached position, so no output is missing or repeated (a `resize` may be). A `gap`
   * record stands for output that is no longer kept. Throws 416 `POSITION_UNKNOWN` if the process has not written that
   * much.
   */
  async *output(processId: string, request: OutputRequest = {}): AsyncGenerator<OutputRecord, void, undefined> {
    let after = request.after ?? 0;
    try {
      for await (const record of followOutput(this.#requests, this.#pathOf(processId), request)) {
        after = positionAfter(record);
        yield record;
      }
    } catch (error) {
      // The computer may have stopped meanwhile.
      const store = this.#storeInsteadOf(error);
      if (store === undefined) throw error;
      yield* storedOutput(store, processId, { ...request, after });
    }
  }

  /** Removes a process that has ended. Throws 409 `PROCESS_RUNS`. */
  async forgetProcess(processId: string): Promise<void> {
    await this.#requests.json('DELETE', this.#pathOf(processId));
  }

  /** The screen of the process's terminal. Throws 409 `NO_TERMINAL` if it has none. */
  screen(processId: string): Promise<Screen> {
    return this.#requests.json('GET', `${this.#pathOf(processId)}/screen`);
  }

  /**
   * Writes to a process's input, and settles when the input is on its way. Throws 409 `PROCESS_ENDED`, `INPUT_CLOSED`,
   * `INPUT_OUT_OF_ORDER` (a number was left out) or `TOO_MANY_WRITERS`, and 503 `INPUT_FULL` if the process does not
   * read.
   */
  async sendInput(processId: string, { number, bytes, eof }: ProcessInput): Promise<void> {
    const query = { ...number, ...(eof === true && { eof: true }) };
    await this.#requests.json('POST', `${this.#pathOf(processId)}/input`, { query, body: bytes ?? new Uint8Array() });
  }

  /**
   * Sends a signal, such as `SIGTERM`, to everything that the process has started. Returns how many processes got it.
   */
  async signalProcess(processId: string, signal: string): Promise<{ signalled: number }> {
    return this.#requests.json('POST', `${this.#pathOf(processId)}/signal`, { json: { signal } });
  }

  async resizeProcess(processId: string, size: Size): Promise<void> {
    await this.#requests.json('POST', `${this.#pathOf(processId)}/resize`, { json: size });
  }

  /**
   * The content of a file. Throws 404 `FILE_NOT_FOUND`, 422 `NOT_A_FILE` (a folder, a FIFO, a device), 403
   * `FILE_ACCESS_DENIED`, 416 `RANGE_NOT_SATISFIABLE`.
   */
  readFile(path: FilePath, { range, signal }: ReadFileRequest = {}): Promise<FileContent> {
    const header = range && { range: `bytes=${range.start}-${range.end ?? ''}` };
    return this.#requests.file({ path }, header, signal);
  }

  /** Writes a whole file in one step: a write that is cut changes nothing. */
  writeFile(
    path: FilePath,
    body: Uint8Array | AsyncIterable<Uint8Array>,
    { mode, parents, ifMatch, ifNew, signal }: WriteFileRequest = {},
  ): Promise<{ size: number; etag: string; isNew: boolean }> {
    return this.#requests.json('PUT', '/files', {
      query: { path, ...(mode !== undefined && { mode: mode.toString(8) }), ...(parents === true && { parents }) },
      headers: {
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
        ...(ifNew === true && { 'if-none-match': '*' }),
      },
      body,
      signal,
      // No deadline: a write may take as long as bytes keep coming.
      deadlineMs: undefined,
    });
  }

  /** Describes a path, without following a link at its end. */
  async statFile(path: FilePath): Promise<FileEntry & { etag: string }> {
    return this.#requests.json('GET', '/files/stat', { query: { path }, deadlineMs: fileDeadlineMs });
  }

  /** A page of a folder, sorted by name, with at most 1,000 entries. */
  listFiles(path: FilePath, page: { after?: string; limit?: number } = {}): Promise<FilePage> {
    return this.#requests.json('GET', '/files/list', { query: { path, ...page }, deadlineMs: fileDeadlineMs });
  }

  /** Deletes a file, a link or an empty folder. With `recursive` also a full folder. Throws 404 `FILE_NOT_FOUND`. */
  async deleteFile(path: FilePath, { recursive = false }: { recursive?: boolean } = {}): Promise<void> {
    await this.#requests.json('DELETE', '/files', { query: { path, recursive }, deadlineMs: fileDeadlineMs });
  }

  /** Deletes whatever is at the path, if anything. */
  async clearPath(path: FilePath): Promise<void> {
    await this.deleteFile(path, { recursive: true }).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'FILE_NOT_FOUND') throw error;
    });
  }

  /** Throws 409 `FILE_EXISTS` if `to` exists, unless it may be replaced. */
  async moveFile(from: FilePath, to: FilePath, { replace = false }: { replace?: boolean } = {}): Promise<void> {
    await this.#requests.json('POST', '/files/move', {
      query: { path: from, to, replace },
      deadlineMs: fileDeadlineMs,
    });
  }

  /** Throws 409 `FILE_EXISTS`. With `parents` it makes missing parents too, and accepts a folder that exists. */
  async makeFolder(path: FilePath, { parents = false }: { parents?: boolean } = {}): Promise<void> {
    await this.#requests.json('POST', '/files/folder', { query: { path, parents } });
  }

  #pathOf(processId: string): string {
    return `${this.#processes}/${encodeURIComponent(processId)}`;
  }

  async #orStored<T>(ask: () => Promise<T>, read: (store: ProcessStore) => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const store = this.#storeInsteadOf(error);
      if (store === undefined) throw error;
      return read(store);
    }
  }

  /** The stored processes, if the error says that the computer is stopped and its store is on this machine. */
  #storeInsteadOf(error: unknown): ProcessStore | undefined {
    const isStopped = error instanceof DomainError && error.code === 'COMPUTER_NOT_RUNNING';
    if (!isStopped || !('processesDir' in this.#endpoint) || this.#endpoint.processesDir === undefined)
      return undefined;
    return new ProcessStore(this.#endpoint.processesDir, { maxLogBytes: 0 });
  }

  /** A connection to a port inside, on 127.0.0.1 or ::1. Throws 502 `PORT_NOT_LISTENING`. */
  dialPort(port: number, { signal }: { signal?: AbortSignal } = {}): Promise<Duplex> {
    return dial(this.#endpoint, `/ports/${port}`, signal);
  }

  /**
   * A connection to a unix socket inside. With `own` it does not keep the computer awake. Throws 502
   * `SOCKET_NOT_LISTENING`.
   */
  dialSocket(path: string, { signal }: { signal?: AbortSignal } = {}): Promise<Duplex> {
    const prefix = this.#processes === '/processes' ? '' : '/own';
    return dial(this.#endpoint, `${prefix}/sockets/${encodeURIComponent(path)}`, signal);
  }
}
