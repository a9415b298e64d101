import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { HolderOrder, HolderReport, HolderSpec } from './holderSpec.ts';
import type { OwnView } from './ownView.ts';

const program = fileURLToPath(new URL('../holder/main.ts', import.meta.url));
const maxLogBytes = 5 * 1024 * 1024;

/** A holder that was started and waits for its computer, or has it. */
export interface Holder {
  pid: number;
  /** Settles when it has ended. */
  ended: Promise<void>;
  send(message: HolderSpec | HolderOrder): void;
  /** The next report; `failed` where it has ended instead. */
  report(): Promise<HolderReport>;
  /** It is to go on without us. */
  letGo(): void;
  kill(): void;
}

/** Holders that wait, so that no computer waits for a Node to start. */
export interface HolderPool {
  take(): Holder;
  close(): Promise<void>;
}

interface PoolOptions {
  size: number;
  logs: string;
  /** The beginning of the command line that starts one (`ownView.ts`). */
  view: OwnView | undefined;
}

export function createHolderPool({ size, logs, view = [] }: PoolOptions): HolderPool {
  const spares = new Set<Holder>();
  let closed = false;
  const fill = () => {
    while (!closed && spares.size < size) {
      const spare = startHolder(logs, view);
      spares.add(spare);
      void spare.ended.then(() => spares.delete(spare));
    }
  };
  fill();
  return {
    take() {
      const [spare = startHolder(logs, view)] = spares;
      spares.delete(spare);
      // Not at once: the new one would start beside the computer that is waited for.
      setTimeout(fill, 200).unref();
      return spare;
    },
    async close() {
      closed = true;
      const waiting = [...spares];
      for (const spare of waiting) spare.kill();
      await Promise.all(waiting.map((spare) => spare.ended));
    },
  };
}

function startHolder(logs: string, view: OwnView): Holder {
  const log = openLog(logs);
  const [file, ...args] = [...view, process.execPath, '--disable-warning=ExperimentalWarning', program];
  const child = spawn(file as string, args, {
    detached: true,
    cwd: '/',
    env: {},
    stdio: ['pipe', log, log, 'pipe'],
  });
  closeSync(log);
  child.unref();
  const orders = child.stdin as Writable;
  const reports = child.stdio[3] as Readable;
  orders.on('error', () => undefined); // it has ended, which `reports` says
  reports.on('error', () => undefined);
  const lines = createInterface({ input: reports })[Symbol.asyncIterator]();
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  return {
    pid: child.pid ?? 0,
    ended,
    send: (message) => orders.write(`${JSON.stringify(message)}\n`),
    async report() {
      const { value, done } = await lines.next();
      if (done !== true) return JSON.parse(value) as HolderReport;
      return { type: 'failed', reason: `the holder ended before its computer ran${await howItEnded(child, ended)}` };
    },
    letGo() {
      orders.destroy();
      reports.destroy();
    },
    kill() {
      child.ref(); // somebody waits for its end
      child.kill('SIGKILL');
    },
  };
}

async function howItEnded(child: ChildProcess, ended: Promise<void>): Promise<string> {
  await ended;
  if (child.signalCode !== null) return ` (${child.signalCode})`;
  return child.exitCode === null ? '' : ` (code ${child.exitCode})`;
}

/** One log for all, and the one before it. */
function openLog(logs: string): number {
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const file = join(logs, 'holders.log');
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}
