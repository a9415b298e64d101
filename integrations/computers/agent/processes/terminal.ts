import { accessSync, constants, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { ReadStream } from 'node:tty';
import { type LeaderExit, Refusal } from '../../protocol/agentRequests.ts';
import { agentFolder } from '../../protocol/holderSpec.ts';

/** The interface of node-pty's `pty.node`, in the version that we pin. */
interface PtyBinding {
  fork(
    file: string,
    args: string[],
    env: string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    isUtf8: boolean,
    helperPath: string,
    onExit: (code: number, signal: number) => void,
  ): { fd: number; pid: number };
  resize(fd: number, cols: number, rows: number): void;
}

let binding: PtyBinding | undefined;

/** Terminals are rare, so the module is loaded with the first one. */
function pty(): PtyBinding {
  if (binding === undefined) {
    const module = { exports: {} as PtyBinding };
    process.dlopen(module, `${agentFolder}/pty.node`);
    binding = module.exports;
  }
  return binding;
}

const signalNames = new Map(Object.entries(system.signals).map(([name, number]) => [number, name]));

/** Starts a program in a terminal of its own, whose session it leads. Throws `Refusal`. */
export function startInTerminal(
  { file, args, cwd, env }: { file: string; args: string[]; cwd: string; env: Record<string, string> },
  { cols, rows }: { cols: number; rows: number },
  onExit: (exit: LeaderExit) => void,
): { pid: number; fd: number; socket: ReadStream } {
  const path = findProgram(file, cwd, env.PATH);
  if (path === undefined) throw new Refusal('COMMAND_NOT_FOUND');
  const variables = Object.entries({ TERM: 'xterm-256color', ...env }).map(([name, value]) => `${name}=${value}`);
  const ended = (code: number, signal: number) => {
    const name = signalNames.get(signal);
    onExit(name === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal: name });
  };
  let forked: { fd: number; pid: number };
  try {
    forked = pty().fork(path, args, variables, cwd, cols, rows, -1, -1, false, '', ended);
  } catch {
    throw new Refusal('COMMAND_NOT_STARTED');
  }
  return { ...forked, socket: new ReadStream(forked.fd) };
}

export function resizeTerminal(fd: number, cols: number, rows: number): void {
  pty().resize(fd, cols, rows);
}

/** Looks for the program before it is started: in a terminal, a missing program would only show as an exit code. */
function findProgram(file: string, cwd: string, path = '/usr/local/bin:/usr/bin:/bin'): string | undefined {
  if (file.includes('/')) return [file.startsWith('/') ? file : `${cwd}/${file}`].find(isProgram);
  return path
    .split(':')
    .map((folder) => `${folder}/${file}`)
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
