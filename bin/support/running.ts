import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StackError } from '../../stack/errors.ts';
import { type HeldLock, isRunning, type ProcessStamp, processStamp } from '../../stack/fileLock.mjs';
import { lockDataDir } from '../../stack/folders.ts';
import type { Part } from '../../stack/index.ts';
import type { Report } from '../../stack/report.ts';

/**
 * The file that `atrium up` writes to the data directory for other commands. `token`, for example, must find the
 * database that it started.
 */
export interface RunningAtrium {
  process: ProcessStamp;
  state: 'starting' | 'running' | 'stopping';
  startedAt: string;
  /** Variables of config/ for the parts that were started. They hold passwords, so only the owner can read the file. */
  environment: Record<string, string>;
  parts: Part[];
  apiUrl?: string;
}

const fileName = 'run/atrium.json';
/** How long a running Atrium may take to notice that its npm was killed, and to announce that it stops. */
const noticeMs = 3_000;
const stopMs = 60_000;
const pollMs = 100;

export function findRunning(dataDir: string): RunningAtrium | undefined {
  try {
    const found = JSON.parse(readFileSync(join(dataDir, fileName), 'utf8')) as RunningAtrium;
    return isRunning(found.process) ? found : undefined;
  } catch {
    return undefined;
  }
}

export function announceOurselves(dataDir: string): {
  update(change: Partial<RunningAtrium>): void;
  withdraw(): void;
} {
  const file = join(dataDir, fileName);
  let current: RunningAtrium | undefined = {
    process: processStamp(process.pid) ?? { pid: process.pid, startTime: '' },
    state: 'starting',
    startedAt: new Date().toISOString(),
    environment: {},
    parts: [],
  };
  const write = () => {
    // A rename, so that a reader never sees a partial file.
    writeFileSync(`${file}.new`, JSON.stringify(current, undefined, 2), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
  write();
  return {
    update(change) {
      if (current === undefined) return;
      current = { ...current, ...change };
      write();
    },
    withdraw() {
      current = undefined;
      rmSync(file, { force: true });
    },
  };
}

/**
 * Takes the data directory for this process. Waits for an earlier Atrium that is stopping, so that a restart right
 * after a stop works.
 */
export async function takeDataDir(dataDir: string, report: Report, signal: AbortSignal): Promise<HeldLock> {
  let deadline = performance.now() + noticeMs;
  let waiting = false;
  for (;;) {
    try {
      return lockDataDir(dataDir);
    } catch (error) {
      if (!(error instanceof StackError)) throw error;
      const other = findRunning(dataDir);
      if (other?.state === 'stopping' && !waiting) {
        report(`Waiting for the earlier Atrium (process ${other.process.pid}) to stop …`);
        waiting = true;
        deadline = performance.now() + stopMs;
      }
      if (performance.now() > deadline) throw error;
    }
    await sleep(pollMs, undefined, { signal });
  }
}
