import { DomainError } from '../../../../base/errors.ts';
import { withoutLoading } from '../../../../base/loadingVariables.ts';
import { limitVariables } from '../../drivers/bubblewrap/view.ts';
import type { InputNumber } from '../../hostClient.ts';
import type { LiveProcess } from '../../processes/liveProcess.ts';
import type { ProcessStore } from '../../processes/processStore.ts';
import type { Size } from '../../processes/records.ts';
import { processMarker } from '../../protocol/agentRequests.ts';
import { notRunning } from '../../protocol/holderHttp.ts';
import type { HolderSpec } from '../../protocol/holderSpec.ts';
import type { ProcessInfo, StartProcess } from '../../types.ts';
import type { Agent } from '../agent.ts';
import type { Cell, Cells } from '../sandboxes/cells.ts';
import type { Screens } from '../screens/screens.ts';
import { InputOrder } from './inputOrder.ts';
import { Runner } from './runner.ts';
import { requireStartable } from './startRequest.ts';

const startDeadlineMs = 30_000;
const askDeadlineMs = 10_000;
/** By number, which needs no entry in a list that the tenant may have changed. */
const root = '0';
/** How much input may wait for a process that does not read. */
const maxWaitingInputBytes = 1_048_576;

interface Entry {
  runner: Runner;
  order: InputOrder;
  isInputOpen: boolean;
  isLook: boolean;
}

interface ProcessesOptions {
  spec: HolderSpec;
  /** Whose processes these are: the users', which only a running computer has, or Atrium's own. */
  owner: 'user' | 'atrium';
  maxProcesses: number;
  /** How many of them may be processes that only look. Undefined: no separate limit. */
  maxLooks?: number;
  agent: Agent;
  /** Sandboxes for private processes. If undefined, private processes run beside the others. */
  cells?: Cells | undefined;
  store: ProcessStore;
  screens: Screens;
  oomKills: () => number;
  /** Called after a start, so that the process is moved to the cgroup with its limits. */
  onStarted: () => void;
  /** Called before a command starts. Not for what only looks. */
  beforeStart?: (() => Promise<void>) | undefined;
  /** Called when a command has exited, before its log says so. Not for terminals, and not for what only looks. */
  beforeEnd?: (() => Promise<void>) | undefined;
}

/** The processes that run, and the operations on them. */
export class HolderProcesses {
  readonly #options: ProcessesOptions;
  readonly #entries = new Map<string, Entry>();
  #starting = 0;
  #startingLooks = 0;
  #isStopping = false;
  #isPaused = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#entries.size + this.#starting;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** The host has paused or resumed the computer. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    for (const { runner } of this.#entries.values()) runner.setPaused(isPaused);
  }

  async start(request: StartProcess): Promise<{ process: ProcessInfo; isNew: boolean }> {
    const { store } = this.#options;
    const { isLook = false } = request;
    requireStartable(request);
    if (!this.#mayStart || this.#isStopping) throw notRunning();
    const most = this.#reached(isLook);
    // A known process is only attached to, so the limit does not apply.
    if (most !== undefined && !(await this.#isKnown(request.processId))) {
      throw new DomainError('rateLimited', 'TOO_MANY_PROCESSES', `At most ${most} processes run at once.`);
    }
    this.#starting++;
    if (isLook) this.#startingLooks++;
    try {
      const { process, info } = await store.take(request, this.#cwdOf(request));
      if (process === undefined) return { process: info, isNew: false };
      await this.#begin(process, request);
      void store.prune().catch(() => undefined);
      return { process: process.info(), isNew: true };
    } finally {
      this.#starting--;
      if (isLook) this.#startingLooks--;
    }
  }

  /** Writes to a process's input. A numbered input is written once. */
  async input(
    processId: string,
    { number, bytes, eof }: { number: InputNumber | undefined; bytes: Buffer; eof: boolean },
  ): Promise<void> {
    const { runner, order, isInputOpen } = await this.#entry(processId);
    const { input } = runner;
    if (number !== undefined && order.isKnown(number.writer, number.seq)) return;
    if (!isInputOpen || input.writableEnded || input.destroyed) {
      throw new DomainError('conflict', 'INPUT_CLOSED', 'The process takes no input.');
    }
    if (input.writableLength + bytes.length > maxWaitingInputBytes) {
      throw new DomainError('unavailable', 'INPUT_FULL', 'The process does not read its input.', {
        retryAfterSeconds: 1,
      });
    }
    if (number !== undefined) order.take(number.writer, number.seq);
    if (bytes.length > 0) input.write(bytes);
    if (eof) input.end();
  }

  /** Also signals processes that an ended process has left behind. */
  async signal(processId: string, signal: string): Promise<number> {
    const runner = this.#entries.get(processId)?.runner;
    if (runner !== undefined) return runner.signal(signal);
    await this.#options.store.info(processId);
    const request = { kind: 'signal', processId, signal } as const;
    const { signalled } = await this.#options.agent.ask<{ signalled: number }>(request, { deadlineMs: askDeadlineMs });
    if (signalled === 0) throw ended();
    return signalled;
  }

  async resize(processId: string, size: Size): Promise<void> {
    const { process, agent } = (await this.#entry(processId)).runner;
    if (process.meta.info.pty === null) throw noTerminal();
    await agent.ask({ kind: 'resize', processId, ...size }, { deadlineMs: askDeadlineMs });
    await process.resized(size);
  }

  /** Asks all processes to end, and kills those that remain after the grace. No more processes start. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const runners = [...this.#entries.values()].map(({ runner }) => runner);
    await Promise.all(runners.map((runner) => runner.stop(graceMs)));
  }

  /** Settles when the ends of all processes are on the disk. */
  async close(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ runner }) => runner.process.ended));
  }

  /** The limit that leaves no room for one more process. Undefined if there is room. */
  #reached(isLook: boolean): number | undefined {
    const { maxProcesses, maxLooks = maxProcesses } = this.#options;
    if (this.running >= maxProcesses) return maxProcesses;
    const looks = [...this.#entries.values()].filter((entry) => entry.isLook).length + this.#startingLooks;
    return isLook && looks >= maxLooks ? maxLooks : undefined;
  }

  get #mayStart(): boolean {
    const { owner, spec } = this.#options;
    return spec.purpose === 'computer' || (spec.purpose === 'work' && owner === 'atrium');
  }

  async #begin(process: LiveProcess, request: StartProcess): Promise<void> {
    const { store, screens, oomKills, onStarted, beforeStart, beforeEnd, spec, cells } = this.#options;
    const { processId, command, pty, stdin, input = false, isLook = false, isPrivate = false, files } = request;
    const timeoutMs = shorter(request.timeoutMs, spec.settings.longestMs);
    const hasInput = input || pty !== undefined || stdin !== undefined;
    const cwd = process.meta.info.cwd;
    const asked = {
      kind: 'process',
      processId,
      command,
      cwd,
      env: this.#envOf(request),
      pty: pty ?? null,
      input: hasInput,
      files: files === undefined ? null : { ...files, folder: this.#cwdOf({ cwd: files.folder }) },
      user: this.#user,
      isMoved: !(isPrivate && cells !== undefined) && spec.cgroups?.settle != null,
    } as const;
    const isInputOpen = input || pty !== undefined;
    let cell: Cell | undefined;
    try {
      if (isPrivate) cell = await cells?.open();
      if (!isLook) await beforeStart?.();
      const agent = cell?.agent ?? this.#options.agent;
      const { stream } = await agent.open(asked, {
        deadlineMs: startDeadlineMs,
        send: (opened) => {
          if (stdin !== undefined) opened.write(Buffer.from(stdin, 'base64'));
          if (!isInputOpen) opened.end();
        },
      });
      onStarted();
      const waits = pty === undefined && !isLook;
      const runner = new Runner(process, stream, agent, {
        oomKills,
        timeoutMs,
        beforeEnd: waits ? beforeEnd : undefined,
      });
      this.#entries.set(processId, { runner, order: new InputOrder(), isInputOpen, isLook });
      if (pty !== undefined) screens.follow(process, pty);
      void process.ended.finally(() => {
        this.#entries.delete(processId);
        cell?.end();
      });
    } catch (error) {
      cell?.end();
      // A refused process was not started, so its id is free again. Without an answer it may have been started.
      const isRefused =
        error instanceof DomainError && error.kind !== 'upstreamTimeout' && error.kind !== 'unavailable';
      if (isRefused) await store.forget(process);
      else await process.end({ state: 'lost', exitCode: null, signal: null, killedBy: null });
      throw error;
    }
  }

  #cwdOf({ cwd = this.#usualCwd }: Pick<StartProcess, 'cwd'>): string {
    const { home } = this.#options.spec.sandbox;
    if (cwd.includes('\0'))
      throw new DomainError('unprocessable', 'CWD_NOT_FOUND', 'The working folder does not exist.');
    if (cwd.startsWith('/')) return cwd;
    return cwd === '.' || cwd === '' ? home : `${home}/${cwd}`;
  }

  /** With a root file system of its own, a process may change its user, so even one of root is moved before it begins. */
  get #user(): string {
    const { owner, spec } = this.#options;
    if ('kind' in spec.sandbox || spec.sandbox.system === undefined) return '';
    return (owner === 'user' && spec.computer.user) || root;
  }

  get #usualCwd(): string {
    const { owner, spec } = this.#options;
    return owner === 'user' ? (spec.computer.workdir ?? '.') : '.';
  }

  #envOf({ processId, env, usualEnv, isPrivate = false }: StartProcess): Record<string, string> {
    const { sandbox, computer } = this.#options.spec;
    // The computer may have such a variable from the time before these names were refused.
    const computers = isPrivate ? withoutLoading(computer.env) : computer.env;
    return {
      ...sandbox.env,
      ...limitVariables(computer.limits),
      ...usualEnv,
      ...computers,
      ...env,
      [processMarker]: processId,
    };
  }

  async #entry(processId: string): Promise<Entry> {
    const entry = this.#entries.get(processId);
    if (entry !== undefined) return entry;
    await this.#options.store.info(processId);
    throw ended();
  }

  async #isKnown(processId: string): Promise<boolean> {
    return this.#options.store.info(processId).then(
      () => true,
      () => false,
    );
  }
}

function shorter(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

export function ended(): DomainError {
  return new DomainError('conflict', 'PROCESS_ENDED', 'The process has ended.');
}

export function noTerminal(): DomainError {
  return new DomainError('conflict', 'NO_TERMINAL', 'The process has no terminal.');
}
