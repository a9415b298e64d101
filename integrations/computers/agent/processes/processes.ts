import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type LeaderExit, type ProcessRequest, Refusal } from '../../protocol/agentRequests.ts';
import { encodeMessage, messageKind } from '../../protocol/messages.ts';
import { requireFiles } from './expectedFiles.ts';
import { feed, feedTerminal, Outputs, outputSocket } from './outputs.ts';
import { closePipes, type Pipe, Pipes } from './pipes.ts';
import { resizeTerminal, startInTerminal } from './terminal.ts';
import { signalTree } from './tree.ts';

interface Running {
  /** Undefined once the process has ended: its pid may then belong to another process. */
  leader: number | undefined;
  terminal: number | undefined;
}

/** The processes that the holder has started. */
export class Processes {
  readonly #pipes = new Pipes();
  readonly #running = new Map<string, Running>();
  readonly #shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';

  /** Starts a process and sends its output, and at last its exit, over the stream. Throws `Refusal`. */
  async start(request: ProcessRequest, stream: Duplex): Promise<void> {
    const { processId, command, cwd, env } = request;
    if (!isFolder(cwd)) throw new Refusal('CWD_NOT_FOUND');
    if (request.files !== null) await requireFiles(request.files);
    const [file = '', ...args] = typeof command === 'string' ? [this.#shell, '-c', command] : command;
    const running: Running = { leader: undefined, terminal: undefined };
    const outputs = new Outputs(stream);
    const onExit = (exit: LeaderExit) => {
      running.leader = undefined;
      this.#running.delete(processId);
      outputs.leaderEnded(exit);
    };
    const started = { file, args, cwd, env };
    if (request.pty === null) await this.#startWithPipes(started, request.input, running, stream, outputs, onExit);
    else {
      const terminal = startInTerminal(started, request.pty, onExit);
      running.leader = terminal.pid;
      running.terminal = terminal.fd;
      answer(stream, terminal.pid);
      outputs.add(terminal.socket, messageKind.pty);
      feedTerminal(stream, terminal.socket);
    }
    if (running.leader !== undefined) this.#running.set(processId, running);
  }

  /** Returns how many processes got the signal. Also signals processes that an ended process has left behind. */
  signal(processId: string, signal: string): Promise<number> {
    return signalTree(processId, this.#running.get(processId)?.leader, signal as NodeJS.Signals);
  }

  resize(processId: string, cols: number, rows: number): void {
    const terminal = this.#running.get(processId)?.terminal;
    if (terminal === undefined) throw new Refusal('PROCESS_ENDED');
    resizeTerminal(terminal, cols, rows);
  }

  async #startWithPipes(
    { file, args, cwd, env }: { file: string; args: string[]; cwd: string; env: Record<string, string> },
    hasInput: boolean,
    running: Running,
    stream: Duplex,
    outputs: Outputs,
    onExit: (exit: LeaderExit) => void,
  ): Promise<void> {
    const pipes = await this.#pipes.take('in', 'in', ...(hasInput ? (['out'] as const) : []));
    const [out, err, input] = pipes as [Pipe, Pipe, Pipe | undefined];
    let child: ChildProcess;
    try {
      child = spawn(file, args, {
        cwd,
        env,
        detached: true,
        stdio: [input?.childs ?? 'ignore', out.childs, err.childs],
      });
    } catch (error) {
      closePipes(pipes);
      throw refusalOf(error);
    }
    if (child.pid === undefined) {
      closePipes(pipes);
      throw await new Promise<Refusal>((resolve) => child.once('error', (error) => resolve(refusalOf(error))));
    }
    running.leader = child.pid;
    preferForMemory(child.pid);
    answer(stream, child.pid);
    for (const { childs } of pipes) closeSync(childs);
    child.once('exit', (exitCode, signal) => onExit({ exitCode, signal }));
    outputs.add(outputSocket(out.ours), messageKind.stdout);
    outputs.add(outputSocket(err.ours), messageKind.stderr);
    feed(stream, input && new Socket({ fd: input.ours, readable: false, writable: true }));
  }
}

function answer(stream: Duplex, pid: number): void {
  stream.write(encodeMessage(messageKind.answer, { pid }));
}

/** Makes the OOM killer prefer this process to the agent. Children inherit this. */
function preferForMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500');
  } catch {
    // The process has ended, or the sandbox does not allow it.
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function refusalOf(error: unknown): Refusal {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return new Refusal('COMMAND_NOT_FOUND');
  if (code === 'EAGAIN' || code === 'ENOMEM') return new Refusal('TOO_MANY_TASKS');
  return new Refusal(code === 'E2BIG' ? 'COMMAND_TOO_LONG' : 'COMMAND_NOT_STARTED');
}
