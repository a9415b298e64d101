import { mkdir, readdir, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../base/errors.ts';
import type { ProcessInfo, StartProcess } from '../types.ts';
import { KeptProcesses } from './keptProcesses.ts';
import { LiveProcess } from './liveProcess.ts';
import type { ReadableLog } from './logReader.ts';
import { LogRoom } from './logRoom.ts';
import { LogPace } from './pace.ts';
import { fingerprintOf, type ProcessMeta, writeMeta } from './processMeta.ts';
import { storedInfo, storedLog } from './storedLog.ts';

interface StoreLimits {
  maxLogBytes: number;
  /** The size of all logs together, on disk. */
  maxDiskBytes: number;
  /** How many processes may run at once. Each needs some room. */
  maxProcesses: number;
  /** At most this many ended processes are kept, and for this long. */
  maxKept: number;
  maxKeptMs: number;
}

const storeDefaults = {
  maxDiskBytes: Number.POSITIVE_INFINITY,
  maxProcesses: 1,
  maxKept: 200,
  maxKeptMs: 7 * 86_400_000,
};

/** How often writing the end of a process is tried again while the disk is full. */
const endRetryMs = 1_000;

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/**
 * The processes of a computer, each with its description and output in a folder. The folder outlives holders. A process
 * whose holder died before it recorded the end is `lost`.
 */
export class ProcessStore {
  readonly #folder: string;
  readonly #limits: StoreLimits;
  readonly #pace = new LogPace();
  readonly #kept: KeptProcesses;
  readonly #room: LogRoom;
  #isLoaded = false;
  readonly #live = new Map<string, LiveProcess>();
  readonly #creating = new Map<string, Promise<{ process: LiveProcess | undefined; meta: ProcessMeta }>>();
  /** Processes that have just ended, until their size is known. */
  readonly #ending = new Set<Promise<void>>();
  #pruning: Promise<void> = Promise.resolve();

  constructor(folder: string, limits: Partial<StoreLimits> & { maxLogBytes: number }) {
    this.#folder = folder;
    this.#limits = { ...storeDefaults, ...limits };
    const kept = new KeptProcesses(folder, this.#limits);
    this.#kept = kept;
    this.#room = new LogRoom(
      this.#limits.maxDiskBytes,
      () => kept.diskBytes,
      () => kept.dropOldest(),
    );
  }

  /**
   * Reserves an id on disk for a process that is about to start. `process` is undefined if the id is known. Throws 409
   * `PROCESS_ID_TAKEN` if the id has another command.
   */
  async take(request: StartProcess, cwd: string): Promise<{ process: LiveProcess | undefined; info: ProcessInfo }> {
    const { processId } = request;
    const folder = this.#idFolder(processId);
    if (folder === undefined) throw new DomainError('invalid', 'PROCESS_ID_INVALID', 'The process id is invalid.');
    const fingerprint = fingerprintOf(request);
    const begun = this.#creating.get(processId);
    const taking = begun ?? this.#take(request, folder, fingerprint, cwd);
    if (begun === undefined) {
      this.#creating.set(processId, taking);
      void taking.finally(() => this.#creating.delete(processId)).catch(() => undefined);
    }
    const { process, meta } = await taking;
    if (meta.fingerprint !== fingerprint) {
      throw new DomainError('conflict', 'PROCESS_ID_TAKEN', 'A process with this id has another command.');
    }
    const info = this.#live.get(processId)?.info() ?? meta.info;
    return { process: begun === undefined ? process : undefined, info };
  }

  async info(processId: string): Promise<ProcessInfo> {
    const folder = this.#idFolder(processId);
    const live = this.#live.get(processId);
    if (live !== undefined) return live.info();
    const stored = folder === undefined ? undefined : await storedInfo(folder);
    if (stored === undefined) throw unknownProcess();
    return stored.info;
  }

  /** All known processes, the newest first. */
  async list(): Promise<ProcessInfo[]> {
    const infos = await Promise.all((await this.#ids()).map((id) => this.info(id).catch(() => undefined)));
    return infos
      .filter((info) => info !== undefined)
      .toSorted((a, b) => b.startedAt.localeCompare(a.startedAt) || b.processId.localeCompare(a.processId));
  }

  async log(processId: string): Promise<ReadableLog> {
    const live = this.#live.get(processId);
    if (live !== undefined) return live.log;
    const info = await this.info(processId);
    return storedLog(this.#idFolder(processId) as string, info);
  }

  /** Deletes the oldest ended processes if there are too many, or they take too much room. */
  prune(): Promise<void> {
    const pruned = this.#pruning.then(() => this.#prune());
    this.#pruning = pruned.catch(() => undefined);
    return pruned;
  }

  async #take(request: StartProcess, folder: string, fingerprint: string, cwd: string) {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const live = this.#live.get(request.processId);
    if (live !== undefined) return { process: undefined, meta: live.meta };
    const stored = await storedInfo(folder);
    if (stored !== undefined) return { process: undefined, meta: stored };
    // Remove what a holder left that was killed before it started anything.
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { mode: 0o700 });
    const info: ProcessInfo = {
      processId: request.processId,
      command: request.command,
      cwd,
      pty: request.pty ?? null,
      state: 'running',
      exitCode: null,
      signal: null,
      killedBy: null,
      startedAt: new Date().toISOString(),
      endedAt: null,
      outputBytes: 0,
      droppedBytes: 0,
    };
    const meta = { info, fingerprint };
    await writeMeta(folder, meta);
    const process = new LiveProcess(folder, meta, { ...this.#limits, pace: this.#pace, room: this.#room });
    this.#live.set(request.processId, process);
    void process.ended.then(() => this.#keepWritten(process));
    return { process, meta };
  }

  /** Forgets a process that could not be started. Its id is free again. */
  async forget(process: LiveProcess): Promise<void> {
    this.#live.delete(process.meta.info.processId);
    await process.abandon();
    await rm(process.folder, { recursive: true, force: true });
  }

  /** Removes an ended process. Does nothing for an unknown one. Throws 409 `PROCESS_RUNS`. */
  async remove(processId: string): Promise<void> {
    this.folderOf(processId);
    // Wait until its log is complete.
    await Promise.all(this.#ending);
    if (this.#live.get(processId)?.isOver === false || this.#creating.has(processId)) {
      throw new DomainError('conflict', 'PROCESS_RUNS', 'The process has not ended.');
    }
    this.#live.delete(processId);
    await this.#kept.remove(processId);
  }

  /** Retries until the end of a process is on the disk. Until then only this holder knows it. */
  async #keepWritten(process: LiveProcess): Promise<void> {
    const isOurs = () => this.#live.get(process.meta.info.processId) === process;
    while (isOurs() && !(await process.writeEnd())) await delay(endRetryMs, undefined, { ref: false });
    this.#keep(process);
  }

  #keep(process: LiveProcess): void {
    const { processId, startedAt } = process.meta.info;
    // A forgotten process has left nothing.
    if (this.#live.get(processId) !== process) return;
    this.#live.delete(processId);
    const added = this.#kept.add(processId, startedAt);
    this.#ending.add(added);
    void added.then(() => this.#ending.delete(added));
    void this.prune().catch(() => undefined);
  }

  async #prune(): Promise<void> {
    if (!this.#isLoaded) await this.#load();
    for (const process of this.#live.values()) if (process.isOver) await process.writeEnd();
    await Promise.all(this.#ending);
    await this.#kept.prune();
    await this.#room.make(0);
  }

  /** Adds the processes of earlier holders. */
  async #load(): Promise<void> {
    this.#isLoaded = true;
    for (const id of await this.#ids()) {
      const startedAt = (await this.info(id).catch(() => undefined))?.startedAt;
      if (this.#live.has(id) || this.#creating.has(id)) continue;
      if (startedAt !== undefined) await this.#kept.add(id, startedAt);
      // The holder was killed before it started anything.
      else await rm(`${this.#folder}/${id}`, { recursive: true, force: true });
    }
    this.#kept.sort();
  }

  async #ids(): Promise<string[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => idPattern.test(name));
  }

  /** The folder of a process. Throws 404 for an invalid id. */
  folderOf(processId: string): string {
    const folder = this.#idFolder(processId);
    if (folder === undefined) throw unknownProcess();
    return folder;
  }

  #idFolder(processId: string): string | undefined {
    return idPattern.test(processId) ? `${this.#folder}/${processId}` : undefined;
  }
}

function unknownProcess(): DomainError {
  return new DomainError('notFound', 'PROCESS_NOT_FOUND', 'There is no such process.');
}

/**
 * Limits for processes that Atrium itself runs on a computer, such as git. They are separate from the users' processes:
 * users do not see them, and they take none of the users' slots or log room. Their logs are large enough for output
 * that is read as a whole.
 */
export const ownLimits = {
  /** Includes desktops and browsers, for as long as their sessions last. */
  maxProcesses: 32,
  /** How many of them may only look, so that slots remain for those that change something. */
  maxLooks: 5,
  maxLogBytes: 40 * 1_048_576,
  maxDiskBytes: 80 * 1_048_576,
  maxKept: 200,
  maxKeptMs: 86_400_000,
} as const;

/** No process id begins with a dot. */
export function ownProcessesDir(processesDir: string): string {
  return `${processesDir}/.own`;
}
