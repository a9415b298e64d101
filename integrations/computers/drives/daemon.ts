import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { lookUntil } from '../../../base/async.ts';
import { isAlive, killIfAlive, stampOf } from '../system/stamps.ts';
import { askSocket } from './askSocket.ts';
import type { DriveRoot } from './backend.ts';

const startMs = 10_000;
const askMs = 10_000;
const endMs = 10_000;
const maxAnswerBytes = 4 * 1_048_576;

export interface DaemonOptions {
  /** Its program, which `stack/` builds. */
  program: string;
  /** Where it asks for drives, and where it takes orders. */
  backendSocket: string;
  controlSocket: string;
  /** Contents that it keeps, up to so many bytes. */
  cacheDir: string;
  cacheBytes: number;
  /** What programs have written and what is not in a drive yet. */
  stageDir: string;
  log: string;
}

/** A mount as the daemon shows it. */
export interface DaemonMount {
  computerId: string;
  /** False for one that has ended, with files that are not in the drive yet. */
  mounted: boolean;
  access: 'write' | 'read' | 'none';
  pendingFiles: number;
  error: string | null;
}

export interface DaemonState {
  pid: number;
  /** The name of its program, of which each release has another. */
  build: string;
  mounts: DaemonMount[];
}

/** An order to mount the drive of a space for a computer. */
export interface DriveMount {
  spaceId: string;
  name: string;
  /** An existing folder. */
  target: string;
  /** The owner of what is shown. */
  uid: number;
  gid: number;
  /** Where names stay that do not belong into a drive, such as `node_modules`. On the computer's volume. */
  localDir: string;
  /** A folder in the home for files that the drive does not take any more. It need not exist. */
  asideDir: string;
  /** A socket for the computer's holder, which may only wait there until all is in the drive. */
  syncSocket: string;
}

/** An order that also says what the daemon would ask first. */
type MountOrder = DriveMount & { root?: DriveRoot | undefined };

/**
 * The program that mounts the drives of spaces for computers, one for a host. It runs apart from this process, and
 * outlives it.
 */
export class DriveDaemon {
  readonly #options: DaemonOptions;

  constructor(options: DaemonOptions) {
    this.#options = options;
  }

  /** Undefined if it does not run. Rejects if it runs and does not answer. */
  async state(): Promise<DaemonState | undefined> {
    try {
      return await this.#ask<DaemonState>('GET', '/');
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ECONNRESET') return undefined;
      throw error;
    }
  }

  /** Starts it, unless it runs. One of an older release is replaced once it has no mounts. */
  async ensure(): Promise<DaemonState> {
    const known = await this.state();
    const isPresent = known?.build === basename(this.#options.program);
    if (known !== undefined && (isPresent || known.mounts.some(({ mounted }) => mounted))) return known;
    if (known !== undefined) await this.end(known);
    this.#start();
    const pauses = { firstMs: 5, mostMs: 50, forMs: startMs };
    const started = await lookUntil(() => this.state().catch(() => undefined), Boolean, pauses);
    if (started === undefined) throw new Error('the program for drives did not start in time');
    return started;
  }

  async mount(computerId: string, mount: MountOrder): Promise<void> {
    await this.#ask('PUT', `/mounts/${computerId}`, mount);
  }

  /** What is not in the drive after this time stays in the daemon's journal, and goes there later. */
  async unmount(computerId: string, timeoutMs: number): Promise<void> {
    await this.#ask('DELETE', `/mounts/${computerId}?timeoutMs=${timeoutMs}`, undefined, timeoutMs + askMs);
  }

  /** Ends it. It keeps its journal. */
  async end({ pid }: DaemonState): Promise<void> {
    const stamp = stampOf(pid);
    if (stamp === undefined) return;
    killIfAlive(stamp, 'SIGTERM');
    const pauses = { firstMs: 5, mostMs: 50, forMs: endMs };
    if (await lookUntil(() => !isAlive(stamp), Boolean, pauses)) return;
    killIfAlive(stamp);
    await lookUntil(() => !isAlive(stamp), Boolean, pauses);
  }

  #start(): void {
    const { program, backendSocket, controlSocket, cacheDir, cacheBytes, stageDir, log } = this.#options;
    for (const folder of [cacheDir, stageDir, dirname(log)]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    const flags = ['--backend', backendSocket, '--control', controlSocket, '--cache', cacheDir, '--stage', stageDir];
    const output = openSync(log, 'a', 0o600);
    spawn(program, [...flags, '--cache-bytes', String(cacheBytes)], {
      detached: true,
      cwd: '/',
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      stdio: ['ignore', output, output],
    })
      .on('error', () => undefined) // the caller sees that it does not answer
      .unref();
    closeSync(output);
  }

  #ask<Answer>(method: string, path: string, json?: unknown, timeoutMs = askMs): Promise<Answer> {
    const limits = { timeoutMs, maxBytes: maxAnswerBytes };
    return askSocket(this.#options.controlSocket, { method, path, json }, limits);
  }
}
