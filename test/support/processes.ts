import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { lookUntil } from '../../base/async.ts';

/** A program that a test started, with its output so far. */
export interface TestProcess {
  child: ChildProcess;
  pid: number;
  /** Standard output and standard error, in order of arrival. */
  output(): string;
  stdout(): string;
  /** Resolves with the output once it matches `pattern`. Rejects if the program ends before. */
  printed(pattern: RegExp): Promise<string>;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Starts a program in a process group of its own. The test must end it. */
export function start(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): TestProcess {
  const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
    output += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }) as Awaited<TestProcess['exited']>);
  return {
    child,
    pid: child.pid ?? 0,
    output: () => output,
    stdout: () => stdout,
    exited,
    async printed(pattern) {
      let ended = false;
      void exited.then(() => {
        ended = true;
      });
      const isPrinted = () => pattern.test(output);
      if (await lookUntil(isPrinted, (isSo) => isSo || ended, { firstMs: 10 })) return output;
      throw new Error(`The program ended without printing ${pattern}:\n${output}`);
    },
  };
}

/** Waits until `condition` holds, up to the test's own time limit. */
export async function until(condition: () => boolean): Promise<void> {
  await lookUntil(condition, Boolean, { firstMs: 10 });
}

/** The command lines of other processes that contain `text`, to check that nothing is left running. */
export function processesWith(text: string): string[] {
  return otherPids()
    .map(commandLineOf)
    .filter((line) => line.includes(text));
}

/** The processes whose command lines contain all of `texts`. */
export function pidsWith(...texts: string[]): number[] {
  return otherPids()
    .filter((pid) => texts.every((text) => commandLineOf(pid).includes(text)))
    .map(Number);
}

/** These processes and all that descend from them. */
export function withDescendants(pids: readonly number[]): number[] {
  const found = new Set(pids);
  const parents = otherPids().map((pid) => [Number(pid), parentOf(pid)] as const);
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0; // it has ended meanwhile
  }
}

const otherPids = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return ''; // it has ended meanwhile
  }
}

/** The present memory of a process. */
export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) / 1_024;
}

/**
 * What a process has open: files, pipes, and connections with their two ports. Without its connections to
 * `poolPort`, since a pool grows to its limit by itself.
 */
export function openBy(pid: number, poolPort: number): string[] {
  const connections = new Map(
    ['tcp', 'tcp6']
      .flatMap((kind) => readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').split('\n').slice(1))
      .map((line) => line.trim().split(/\s+/))
      .map(([, local = '', remote = '', , , , , , , inode]) => [`socket:[${inode}]`, { local, remote }]),
  );
  const port = (end: string) => Number.parseInt(end.slice(end.lastIndexOf(':') + 1), 16);
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    let target: string;
    try {
      target = readlinkSync(`/proc/${pid}/fd/${descriptor}`);
    } catch {
      return []; // closed meanwhile
    }
    const ends = connections.get(target);
    if (ends === undefined) return [target];
    return port(ends.remote) === poolPort ? [] : [`port ${port(ends.local)} to port ${port(ends.remote)}`];
  });
}
