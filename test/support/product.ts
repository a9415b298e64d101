import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { orAfter } from '../../base/async.ts';
import { nodeFlags } from '../../bin/nodeFlags.mjs';
import type { Role } from '../../bin/support/runtime.ts';
import { plainEnvironment } from './atrium.ts';
import type { TestEnvironment } from './environment.ts';

const program = join(import.meta.dirname, 'productProcess.ts');
/** A product of a test lives briefly. With a larger young generation it spends an eighth less CPU time. */
const flags = [...nodeFlags, '--min-semi-space-size=64', '--max-semi-space-size=64'];
const stopTimeoutMs = 60_000;

/** Atrium, or one role of it, in a process of its own. */
export interface ProductProcess {
  /** Empty for a worker. */
  apiUrl: string;
  pid: number;
  /** Sends a signal. For SIGKILL, waits until the process has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Stops the process in order. Rejects if that takes too long. */
  stop(): Promise<void>;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The log so far. */
  log(): string;
}

/** Starts Atrium in a test's environment, and waits until it is ready. `overrides` are more variables of config/. */
export async function startProduct(
  { environment }: Pick<TestEnvironment, 'environment'>,
  role: Role = 'both',
  overrides: Record<string, string> = {},
): Promise<ProductProcess> {
  const child = spawn(process.execPath, [...flags, program, role], {
    env: plainEnvironment({ ...environment, ...overrides }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (data: Buffer) => {
    log += data;
  });
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }) as Awaited<ProductProcess['exited']>);
  const lines = createInterface({ input: child.stdout });
  const ready = await Promise.race([once(lines, 'line') as Promise<string[]>, exited]);
  if (!Array.isArray(ready)) throw new Error(`Atrium ended before it was ready:\n${log}`);
  const { apiUrl = '' } = JSON.parse(ready[0] ?? '{}') as { apiUrl?: string };

  return {
    apiUrl,
    pid: child.pid ?? 0,
    exited,
    log: () => log,
    async kill(signal) {
      child.kill(signal);
      if (signal === 'SIGKILL') await exited;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      if ((await orAfter(exited, stopTimeoutMs, 'late')) !== 'late') return;
      child.kill('SIGKILL');
      await exited;
      throw new Error(`Atrium did not stop within ${stopTimeoutMs} ms:\n${log}`);
    },
  };
}
