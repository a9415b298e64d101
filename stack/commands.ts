import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Environment } from '../config/index.ts';
import { type Identity, tied } from './tied.ts';

export interface CommandOptions {
  /** Everything the command prints is added here. */
  logFile: string;
  signal?: AbortSignal;
  environment: Environment;
  cwd?: string;
  user?: Identity;
  /** Whether it may go on when this process is killed: for what must not be broken off. */
  outlives?: boolean;
}

/** A tool that did not succeed. `lastLine` is the last thing it printed, which is mostly the reason. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly lastLine: string;

  constructor(command: string, outcome: string, lastLine: string) {
    super(`${command} ${outcome}: ${lastLine}`);
    this.lastLine = lastLine;
  }
}

/**
 * Runs a tool to its end in a process group of its own: Ctrl-C in the terminal does not reach it directly, and giving up the start ends
 * the tool with all its children, before this function returns.
 */
export async function runCommand(command: string, args: string[], options: CommandOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const log = openSync(options.logFile, 'a');
  try {
    const [program, ...rest] = options.outlives
      ? [command, ...args]
      : tied(options.environment, [command, ...args], options.user);
    const child = spawn(program, rest, {
      detached: true,
      stdio: ['ignore', log, log],
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
      if (outcome !== undefined) throw new CommandError(command, outcome, lastLineOf(options.logFile));
    } finally {
      options.signal?.removeEventListener('abort', end);
      signalGroup(child.pid, 'SIGKILL');
    }
  } finally {
    closeSync(log);
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The whole group is gone already.
  }
}

/** The last line with text in it. */
export function lastLineOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').at(-1)?.trim() ?? '';
  } catch {
    return '';
  }
}
