import { mkdir, readdir, rm } from 'node:fs/promises';
import { DomainError } from '../../../models/errors.ts';
import type { ProcessInfo, StartProcess } from '../types.ts';
import { LiveProcess } from './liveProcess.ts';
import type { ReadableLog } from './logReader.ts';
import { LogPace } from './pace.ts';
import { fingerprintOf, type ProcessMeta, writeMeta } from './processMeta.ts';
import { storedInfo, storedLog } from './storedLog.ts';

export interface StoreLimits {
  maxLogBytes: number;
  /** Of processes that have ended, at most so many are kept, and for so long. */
  maxKept: number;
  maxKeptMs: number;
}

export const storeDefaults = { maxKept: 200, maxKeptMs: 7 * 86_400_000 };

/** How many full logs the ended processes may take together. */
const maxKeptLogs = 16;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/**
 * The processes of a computer, in a folder each: what they are, and what they put out. The folder outlives holders; what
 * a holder did not live to write down is `lost`.
 */
export class ProcessStore {
  readonly #folder: string;
  readonly #limits: StoreLimits;
  readonly #pace = new LogPace();
  readonly #live = new Map<string, LiveProcess>();
  readonly #creating = new Map<string, Promise<{ process: LiveProcess | undefined; meta: ProcessMeta }>>();
  #pruning: Promise<void> | undefined;

  constructor(folder: string, limits: Partial<StoreLimits> & { maxLogBytes: number }) {
    this.#folder = folder;
    this.#limits = { ...storeDefaults, ...limits };
  }

  /** Those that run. */
  get live(): ReadonlyMap<string, LiveProcess> {
    return this.#live;
  }

  /**
   * Takes an id for a process that is to be started, on disk; `isNew` is false where it is one that is known. Throws 409
   * `PROCESS_ID_TAKEN` where that has another command.
   */
  async take(request: StartProcess, cwd: string): Promise<{ process: LiveProcess | undefined; info: ProcessInfo }> {
    const { processId } = request;
    const folder = this.#folderOf(processId);
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
    const folder = this.#folderOf(processId);
    const live = this.#live.get(processId);
    if (live !== undefined) return live.info();
    const stored = folder === undefined ? undefined : await storedInfo(folder);
    if (stored === undefined) throw unknownProcess();
    return stored.info;
  }

  /** All that are known, the newest first. */
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
    return storedLog(this.#folderOf(processId) as string, info);
  }

  /** Deletes the oldest of those that have ended, where there are more than are kept. */
  prune(): Promise<void> {
    this.#pruning ??= this.#prune().finally(() => {
      this.#pruning = undefined;
    });
    return this.#pruning;
  }

  async #take(request: StartProcess, folder: string, fingerprint: string, cwd: string) {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const live = this.#live.get(request.processId);
    if (live !== undefined) return { process: undefined, meta: live.meta };
    const stored = await storedInfo(folder);
    if (stored !== undefined) return { process: undefined, meta: stored };
    // What a holder left that was killed before it had started anything.
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
    const process = new LiveProcess(folder, meta, { ...this.#limits, pace: this.#pace });
    this.#live.set(request.processId, process);
    void process.ended.finally(() => this.#live.delete(request.processId)).catch(() => undefined);
    return { process, meta };
  }

  /** Forgets a process that could not be started: its id is free again. */
  async forget(process: LiveProcess): Promise<void> {
    await process.abandon();
    await rm(process.folder, { recursive: true, force: true });
  }

  async #prune(): Promise<void> {
    const ended = (await this.list()).filter(({ processId }) => !this.#live.has(processId));
    const { maxKept, maxKeptMs, maxLogBytes } = this.#limits;
    const oldest = Date.now() - maxKeptMs;
    let bytes = 0;
    const kept = new Set<string>();
    for (const { processId, startedAt, outputBytes, droppedBytes } of ended) {
      bytes += outputBytes - droppedBytes;
      const isKept = kept.size < maxKept && Date.parse(startedAt) > oldest && bytes <= maxKeptLogs * maxLogBytes;
      if (isKept) kept.add(processId);
      else await rm(this.#folderOf(processId) as string, { recursive: true, force: true });
    }
  }

  async #ids(): Promise<string[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => idPattern.test(name));
  }

  #folderOf(processId: string): string | undefined {
    return idPattern.test(processId) ? `${this.#folder}/${processId}` : undefined;
  }
}

export function unknownProcess(): DomainError {
  return new DomainError('notFound', 'PROCESS_NOT_FOUND', 'There is no such process.');
}
