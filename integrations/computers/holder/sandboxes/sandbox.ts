import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { SandboxCommand, SandboxPids } from '../../protocol/holderSpec.ts';

const maxComplaint = 2_000;
const maxInfo = 10_000;

/** A sandbox that exists, but does nothing until it is released. */
export interface Sandbox {
  /** The agent's standard output and input. */
  output: Readable;
  input: Writable;
  pids: SandboxPids | null;
  release(): void;
  kill(): void;
  /** Resolves with how it ended, in one line for people. */
  ended: Promise<string>;
}

/** The first process of a sandbox. */
export interface BegunSandbox {
  child: ChildProcess;
  /** Resolves with how it ended. */
  ended: Promise<string>;
}

/** Starts the first process of a sandbox. */
export function beginSandbox(
  { file, args, descriptors }: SandboxCommand,
  become?: { uid: number; gid: number },
): BegunSandbox {
  const child = spawn(file, args, {
    cwd: '/',
    env: {},
    stdio: ['pipe', 'pipe', 'pipe', ...descriptors.map(() => 'pipe' as const)],
    ...become,
  });
  return { child, ended: endOf(child) };
}

/** Throws if the sandbox cannot be made. */
export async function makeSandbox(
  command: SandboxCommand,
  { child, ended }: BegunSandbox = beginSandbox(command),
): Promise<Sandbox> {
  const { descriptors } = command;
  const pipes = child.stdio.slice(3) as (Readable & Writable)[];
  let info: Promise<string> | undefined;
  let block: Writable | undefined;
  for (const [at, descriptor] of descriptors.entries()) {
    const pipe = pipes[at];
    pipe?.on('error', () => undefined);
    if (descriptor.kind === 'write') pipe?.end(Buffer.from(descriptor.data, 'base64'));
    else if (descriptor.kind === 'go') pipe?.end('\n');
    else if (descriptor.kind === 'info') info = pipe && firstJson(pipe);
    else block = pipe;
  }
  const said = await Promise.race([info ?? '{}', ended.then((how) => Promise.reject(new Error(how)))]);
  const init = (JSON.parse(said) as { 'child-pid'?: number })['child-pid'] ?? child.pid;
  const kill = () => {
    // Kill the sandbox's first process too, in case the monitor does not pass the signal on.
    for (const pid of new Set([init, child.pid])) killPid(pid);
  };
  return {
    output: child.stdout as Readable,
    input: child.stdin as Writable,
    pids: { monitor: child.pid as number, init: init as number },
    release: () => block?.end('x'),
    kill,
    ended,
  };
}

/** Describes how the sandbox ended, with its last line on stderr. */
function endOf(child: ChildProcess): Promise<string> {
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    if (complaint.length < maxComplaint) complaint = `${complaint}${chunk}`.slice(0, maxComplaint);
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`The sandbox cannot be started: ${error.message}.`));
    child.once('exit', (code, signal) => {
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      const said = complaint.trim().split('\n').at(-1) ?? '';
      resolve(`The sandbox has ended ${how}${said === '' ? '' : `: ${said}`}.`);
    });
  });
}

/** Reads only the first JSON object, because the writer never closes the pipe. Later bytes are discarded. */
function firstJson(pipe: Readable): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const take = (chunk: Buffer) => {
      text += chunk;
      if (!text.includes('}') && text.length < maxInfo) return;
      pipe.off('data', take).resume();
      resolve(text);
    };
    pipe.on('data', take);
  });
}

function killPid(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  } catch {}
}
