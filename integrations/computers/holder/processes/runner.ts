import { DomainError } from '../../../../base/errors.ts';
import type { LiveProcess } from '../../processes/liveProcess.ts';
import type { Exit } from '../../processes/records.ts';
import type { LeaderExit } from '../../protocol/agentRequests.ts';
import type { ChannelStream } from '../../protocol/channelStream.ts';
import { ChannelViolation } from '../../protocol/frames.ts';
import { type Message, MessageDecoder, messageKind, parse } from '../../protocol/messages.ts';
import type { OutputKind } from '../../types.ts';
import type { Agent } from '../agent.ts';

const kinds: Partial<Record<number, OutputKind>> = {
  [messageKind.stdout]: 'stdout',
  [messageKind.stderr]: 'stderr',
  [messageKind.pty]: 'pty',
};

const signalPattern = /^SIG[A-Z0-9]{1,8}$/;
/** How long the agent may take to kill a process and say so. After this the process counts as ended. */
const killDeadlineMs = 10_000;

interface RunnerOptions {
  oomKills: () => number;
  timeoutMs?: number | undefined;
  /** Called when the process has exited, before its log says so. */
  beforeEnd?: (() => Promise<void>) | undefined;
}

/** One running process: writes its output to its log until it ends. */
export class Runner {
  readonly process: LiveProcess;
  readonly input: ChannelStream;
  readonly agent: Agent;
  readonly #oomKills: () => number;
  readonly #beforeEnd: RunnerOptions['beforeEnd'];
  readonly #oomKillsBefore: number;
  #killedBy: Exit['killedBy'] = null;
  readonly #timeLimit: Countdown | undefined;
  /** Whether a caller sent SIGKILL. */
  #wasKilled = false;

  constructor(
    process: LiveProcess,
    stream: ChannelStream,
    agent: Agent,
    { oomKills, timeoutMs, beforeEnd }: RunnerOptions,
  ) {
    this.process = process;
    this.input = stream;
    this.agent = agent;
    this.#oomKills = oomKills;
    this.#beforeEnd = beforeEnd;
    this.#oomKillsBefore = oomKills();
    if (timeoutMs !== undefined) {
      this.#timeLimit = new Countdown(timeoutMs, () => void this.kill('timeout'));
    }
    void this.#run();
  }

  /** The process's time limit stops while its computer is paused. */
  setPaused(isPaused: boolean): void {
    if (this.process.hasEnded) return;
    if (isPaused) this.#timeLimit?.pause();
    else this.#timeLimit?.resume();
  }

  async signal(signal: string): Promise<number> {
    if (signal === 'SIGKILL') this.#wasKilled = true;
    const { signalled } = await this.agent.ask<{ signalled: unknown }>(
      { kind: 'signal', processId: this.process.meta.info.processId, signal },
      { deadlineMs: killDeadlineMs },
    );
    return Number.isSafeInteger(signalled) ? (signalled as number) : 0;
  }

  /** Kills the process with everything that it has started. */
  async kill(by: Exit['killedBy']): Promise<void> {
    if (this.process.hasEnded) return;
    this.#killedBy ??= by;
    try {
      await this.signal('SIGKILL');
    } catch {
      // The agent hangs or is gone. The timer below ends the wait.
    }
    const timer = setTimeout(() => this.input.destroy(), killDeadlineMs);
    await this.process.ended;
    clearTimeout(timer);
  }

  /** Asks the process to end, and kills it if it has not ended after the grace. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => void this.kill('stop'), graceMs);
    // From now on any end counts as a stop.
    this.#killedBy ??= 'stop';
    await this.signal('SIGTERM').catch(() => undefined);
    await this.process.ended;
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    let end: LeaderExit | undefined;
    try {
      end = await this.#read();
    } catch (error) {
      if (error instanceof ChannelViolation) this.agent.end(error);
    }
    this.#timeLimit?.pause();
    this.input.destroy();
    if (end !== undefined) await this.#beforeEnd?.();
    // Without a reported end, the computer is gone or the log cannot be written.
    const lost: Exit = { state: 'killed', exitCode: null, signal: 'SIGKILL', killedBy: this.#killedBy ?? 'stop' };
    await this.process.end(end === undefined ? lost : this.#exitOf(end)).catch(() => undefined);
  }

  async #read(): Promise<LeaderExit | undefined> {
    const decoder = new MessageDecoder();
    for await (const chunk of this.input as AsyncIterable<Buffer>) {
      const messages = [...decoder.push(chunk)];
      const exitAt = messages.findIndex(({ kind }) => kind === messageKind.exit);
      const outputs = exitAt < 0 ? messages : messages.slice(0, exitAt);
      await this.process.append(outputs.map(recordOf));
      if (exitAt >= 0) return exitFrom(messages[exitAt] as Message);
    }
    return undefined;
  }

  #exitOf({ exitCode, signal }: LeaderExit): Exit {
    const isKill = signal === 'SIGKILL' || exitCode === 137;
    // No caller asked for the kill, and the OOM killer has killed a process since this one started.
    const isMemory = isKill && !this.#wasKilled && this.#killedBy === null && this.#oomKills() > this.#oomKillsBefore;
    const killedBy = isMemory ? 'memory' : this.#killedBy;
    return { state: signal === null && this.#killedBy !== 'timeout' ? 'exited' : 'killed', exitCode, signal, killedBy };
  }
}

function recordOf({ kind, payload }: Message): { kind: OutputKind; payload: Buffer } {
  const output = kinds[kind];
  if (output === undefined) throw new ChannelViolation('A message of a process is invalid.');
  return { kind: output, payload };
}

function exitFrom({ payload }: Message): LeaderExit {
  const { exitCode, signal } = (parse(payload) ?? {}) as Partial<LeaderExit>;
  const isCode = Number.isInteger(exitCode) && (exitCode as number) >= 0 && (exitCode as number) <= 255;
  if (isCode && signal === null) return { exitCode: exitCode as number, signal: null };
  if (exitCode === null && typeof signal === 'string' && signalPattern.test(signal)) return { exitCode, signal };
  throw new ChannelViolation('The end of a process is invalid.');
}

export function requireSignal(signal: unknown): string {
  if (typeof signal === 'string' && signals.has(signal)) return signal;
  throw new DomainError('unprocessable', 'SIGNAL_INVALID', 'There is no such signal.');
}

const signals = new Set(
  'HUP INT QUIT ABRT KILL USR1 USR2 TERM CONT STOP TSTP WINCH ALRM PIPE'.split(' ').map((name) => `SIG${name}`),
);

const longestTimerMs = 2_147_483_647;

/** Calls a function after a time. Pausing stops the clock. */
class Countdown {
  readonly #then: () => void;
  #leftMs: number;
  #runs: { since: number; timer: NodeJS.Timeout } | undefined;

  constructor(ms: number, then: () => void) {
    this.#leftMs = Math.min(ms, longestTimerMs);
    this.#then = then;
    this.resume();
  }

  pause(): void {
    if (this.#runs === undefined) return;
    clearTimeout(this.#runs.timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#runs.since));
    this.#runs = undefined;
  }

  resume(): void {
    this.#runs ??= { since: performance.now(), timer: setTimeout(this.#then, this.#leftMs) };
  }
}
