import { type Serializable, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { copyFile, rm, stat, truncate } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLog, reasonIn } from './commands.ts';
import type { StackContext } from './context.ts';
import { StackError } from './errors.ts';
import { isRunning, type ProcessStamp, processStamp } from './fileLock.mjs';
import { tied } from './tied.ts';
import type { ServiceUser } from './users.ts';

export interface ServiceOptions {
  /** Also names the log and the pid file. */
  name: string;
  /** A person's name for the service, used in messages. */
  title: string;
  command: string;
  args: string[];
  cwd: string;
  environment: Record<string, string>;
  user: ServiceUser | undefined;
  /** Opens a channel for `send`, and hands these descriptors over as 4, 5, … */
  channel?: { descriptors: number[] };
}

/** A running program of the stack. */
export interface Service {
  name: string;
  title: string;
  pid: number;
  /** Throws a {@link StackError} with the reason from its log if the service has ended. */
  assertAlive(): void;
  /** Resolves when the service has ended, for any reason. */
  exited: Promise<void>;
  /** Why the service ended, for a person. */
  describeEnd(): string;
  /** Sends SIGTERM, and SIGKILL after a grace period. */
  stop(): Promise<void>;
  /** Ends a hanging service with SIGQUIT, on which a Go program writes its stacks to its log. */
  abort(): Promise<void>;
  /** Hands a socket over the channel, and waits for the service's answer. The socket is closed here. */
  send(message: object, socket: Server): Promise<void>;
}

const stopTimeoutMs = 20_000;
const abortTimeoutMs = 5_000;
const maxLogBytes = 20 * 1024 * 1024;
const boundEveryMs = 30_000;

/**
 * Starts a service in a process group of its own. So Ctrl-C in the terminal reaches only Atrium, which stops its parts
 * in order. If Atrium itself is killed, the kernel ends the service (`--pdeathsig`). Where the kernel cannot, the next
 * start ends it by its pid file.
 */
export async function startService(context: StackContext, options: ServiceOptions): Promise<Service> {
  context.signal.throwIfAborted();
  const logFile = serviceLog(context, options.name);
  const pidFile = join(context.dataDir, 'run', `${options.name}.pid`);
  await endLeftover(pidFile);
  rotate(logFile);

  const log = openLog(logFile);
  const [command, ...args] = tied(context.environment, [options.command, ...options.args], options.user);
  const child = spawn(command, args, {
    detached: true,
    cwd: options.cwd,
    stdio: [
      ...(['ignore', log.descriptor, log.descriptor] as const),
      ...(options.channel === undefined ? [] : (['ipc', ...options.channel.descriptors] as const)),
    ],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LANG: 'C.UTF-8',
      ...options.environment,
    },
  });
  closeSync(log.descriptor);
  let outcome: string | undefined;
  const exited = new Promise<void>((resolve) => {
    const end = (how: string) => {
      outcome ??= how;
      resolve();
    };
    child.once('error', (error) => end(`could not be started (${error.message})`));
    child.once('exit', (code, signal) => end(`ended with ${signal ?? `code ${code}`}`));
  });
  if (child.pid === undefined) {
    await exited;
    throw new StackError(`${options.title} ${outcome}.`);
  }
  const bounding = setInterval(() => void boundLog(logFile), boundEveryMs).unref();
  void exited.then(() => clearInterval(bounding));
  writeFileSync(pidFile, JSON.stringify(processStamp(child.pid) ?? { pid: child.pid, startTime: '' }));
  context.onLaunch?.();

  async function endWith(signal: NodeJS.Signals, graceMs: number): Promise<void> {
    if (outcome === undefined) child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await exited;
    clearTimeout(timer);
  }

  const describeEnd = () => `${options.title} ${outcome}: ${reasonIn(logFile, log.size)} — the whole log is ${logFile}`;
  return {
    name: options.name,
    title: options.title,
    pid: child.pid,
    exited,
    describeEnd,
    assertAlive() {
      if (outcome !== undefined) throw new StackError(describeEnd());
    },
    async stop() {
      await endWith('SIGTERM', stopTimeoutMs);
      rmSync(pidFile, { force: true });
    },
    abort: () => endWith('SIGQUIT', abortTimeoutMs),
    async send(message, socket) {
      try {
        const answered = once(child, 'message');
        answered.catch(() => undefined); // if the service ends first, `exited` wins the race
        child.send(message as Serializable, socket);
        await Promise.race([answered, exited]);
      } finally {
        socket.close();
      }
      if (outcome !== undefined) throw new StackError(describeEnd());
    },
  };
}

export function serviceLog(context: Pick<StackContext, 'dataDir'>, name: string): string {
  return join(context.dataDir, 'logs', `${name}.log`);
}

/** Ends a service that an earlier start left running, if it is the same process and not another with its pid. */
async function endLeftover(pidFile: string): Promise<void> {
  const stamp = readStamp(pidFile);
  if (stamp === undefined) return;
  for (let waitedMs = 0; isRunning(stamp); waitedMs += 100) {
    if (waitedMs === 0) process.kill(stamp.pid, 'SIGTERM');
    if (waitedMs === 10_000) process.kill(stamp.pid, 'SIGKILL');
    await sleep(100);
  }
  rmSync(pidFile, { force: true });
}

function readStamp(pidFile: string): ProcessStamp | undefined {
  try {
    return JSON.parse(readFileSync(pidFile, 'utf8')) as ProcessStamp;
  } catch {
    return undefined;
  }
}

/**
 * Rotates the log of a running service. The service keeps the file open, so the log is copied and emptied; lines
 * written in between may be lost. On a full disk the older copy is dropped, to make room.
 */
export async function boundLog(logFile: string, maxBytes = maxLogBytes): Promise<void> {
  try {
    if ((await stat(logFile)).size <= maxBytes) return;
    const older = `${logFile}.1`;
    await rm(older, { force: true });
    await copyFile(logFile, older).catch(() => rm(older, { force: true }));
    await truncate(logFile);
  } catch {
    // The log is gone or cannot be changed. The next round tries again.
  }
}

/** Keeps one older log, so that logs do not grow forever. Called before the log is opened. */
function rotate(logFile: string): void {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxLogBytes) renameSync(logFile, `${logFile}.1`);
}
