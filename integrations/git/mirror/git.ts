import type { GitConfig } from '../../../config/git.ts';
import { type GitSettings, gitEnvironment } from '../process/environment.ts';
import { type GitOutcome, type GitRun, runGit } from '../process/run.ts';
import { describeFailure } from '../rules/describeFailure.ts';

export interface GitCall
  extends Partial<Pick<GitRun, 'input' | 'output' | 'maxOutputBytes' | 'onLine' | 'onHelper' | 'environment'>> {
  settings?: GitSettings;
  isRemote?: boolean;
  secrets?: Iterable<string>;
  /** Words of a failure that is none here. */
  accepts?: RegExp;
  signal?: AbortSignal;
}

/** Git in one bare repository of ours, under its lock and within one operation's time. */
export class Git {
  readonly dir: string;
  /** Where its processes are, and their home. */
  readonly home: string;
  readonly signal: AbortSignal;
  readonly #config: GitConfig;
  readonly #lock: number;

  constructor(options: { config: GitConfig; dir: string; home: string; lock: number; signal: AbortSignal }) {
    this.dir = options.dir;
    this.signal = options.signal;
    this.#config = options.config;
    this.home = options.home;
    this.#lock = options.lock;
  }

  /** Another repository of the same operation. */
  at(dir: string): Git {
    const { signal } = this;
    return new Git({ config: this.#config, dir, home: this.home, lock: this.#lock, signal });
  }

  /** The same within less time. */
  within(signal: AbortSignal): Git {
    const { dir, home } = this;
    return new Git({
      config: this.#config,
      dir,
      home,
      lock: this.#lock,
      signal: AbortSignal.any([this.signal, signal]),
    });
  }

  /** Runs it, however it ends. */
  run(args: readonly string[], call: GitCall = {}): Promise<GitOutcome> {
    const {
      settings = {},
      isRemote = false,
      environment,
      signal = this.signal,
      secrets: _s,
      accepts: _a,
      ...others
    } = call;
    const { maxBytes, memoryBytes } = this.#config;
    return runGit({
      ...others,
      args: [`--git-dir=${this.dir}`, ...args],
      environment: { ...gitEnvironment(this.#config, settings, { home: this.home, isRemote }), ...environment },
      cwd: this.home,
      limits: { fileBytes: maxBytes, memoryBytes },
      lock: this.#lock,
      signal,
    });
  }

  /** Runs it, and throws what its failure means. */
  async do(args: readonly string[], call: GitCall = {}): Promise<GitOutcome> {
    const outcome = await this.run(args, call);
    if (outcome.code === 0 || call.accepts?.test(outcome.said)) return outcome;
    throw describeFailure({ ...outcome, output: String(outcome.output) }, call.secrets);
  }

  async text(args: readonly string[], call: GitCall = {}): Promise<string> {
    return String((await this.do(args, call)).output);
  }
}
