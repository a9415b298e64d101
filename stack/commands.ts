import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import type { Environment } from '../config/index.ts';
import { type Identity, tied } from './tied.ts';

export interface CommandOptions {
  /** Gets everything that the command prints. */
  logFile: string;
  signal?: AbortSignal;
  environment: Environment;
  cwd?: string;
  user?: Identity;
  /** Whether the command goes on when this process is killed: for steps that must not be interrupted. */
  outlives?: boolean;
}

/** A tool failed. `reason` is the line that it printed about that. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly reason: string;

  constructor(command: string, outcome: string, reason: string) {
    super(`${command} ${outcome}: ${reason}`);
    this.reason = reason;
  }
}

/**
 * Runs a tool to its end, in a process group of its own, so that Ctrl-C in the terminal does not reach it directly. An
 * aborted start ends the tool with all its children before this function returns.
 */
export async function runCommand(command: string, args: string[], options: CommandOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const log = openLog(options.logFile);
  try {
    const [program, ...rest] = options.outlives
      ? [command, ...args]
      : tied(options.environment, [command, ...args], options.user);
    const child = spawn(program, rest, {
      detached: true,
      stdio: ['ignore', log.descriptor, log.descriptor],
      env: options.environment,
      cwd: options.cwd,
    });
    const end = () => signalGroup(child.pid, 'SIGTERM');
    options.signal?.addEventListener('abort', end, { once: true });
    try {
      const outcome = await new Promise<string | undefined>((resolve) => {
        child.once('error', (error) => resolve(`could not be run (${error.message})`));
        child.once('close', (code, signal) =>
          resolve(code === 0 ? undefined : `ended with ${signal ?? `code ${code}`}`),
        );
      });
      options.signal?.throwIfAborted();
      if (outcome !== undefined) throw new CommandError(command, outcome, reasonIn(options.logFile, log.size));
    } finally {
      options.signal?.removeEventListener('abort', end);
      signalGroup(child.pid, 'SIGKILL');
    }
  } finally {
    closeSync(log.descriptor);
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group has already ended.
  }
}

/**
 * The line that most likely says why a program ended. Reads only what the program added to its log: the last line that
 * mentions an error, otherwise the last line.
 */
export function reasonIn(file: string, fromByte: number): string {
  const whole = readFileSync(file);
  const lines = whole
    // A log that grew too large was emptied meanwhile. Read it from its start.
    .subarray(fromByte > whole.length ? 0 : fromByte)
    .subarray(-maxReasonBytes)
    .toString('utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.endsWith('[ERROR] Aborting')); // MariaDB prints this line after the reason
  return lines.findLast((line) => /error/i.test(line)) ?? lines.at(-1) ?? 'it printed nothing';
}

const maxReasonBytes = 8_192;

/** Opens a log for appending. `size` is its present length. */
export function openLog(file: string): { descriptor: number; size: number } {
  const descriptor = openSync(file, 'a');
  return { descriptor, size: fstatSync(descriptor).size };
}
