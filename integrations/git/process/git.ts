import type { GitConfig } from '../../../config/git.ts';
import { describeFailure } from '../rules/describeFailure.ts';
import { type GitSettings, gitEnvironment } from './environment.ts';
import { type GitOutcome, type GitRun, runGit } from './run.ts';

export interface GitCall
  extends Partial<Pick<GitRun, 'input' | 'output' | 'maxOutputBytes' | 'onLine' | 'onHelper' | 'environment'>> {
  settings?: GitSettings;
  isRemote?: boolean;
  secrets?: Iterable<string>;
  /** A failure whose standard error matches counts as success. */
  accepts?: RegExp;
  signal?: AbortSignal;
}

interface GitOptions {
  config: GitConfig;
  dir: string;
  home: string;
  lock: number;
  signal: AbortSignal;
}

/** Runs git in one of our bare repositories, under the folder's lock and within the time of one operation. */
export class Git {
  readonly dir: string;
  /** The home and working directory of git's processes. */
  readonly home: string;
  readonly signal: AbortSignal;
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.dir = options.dir;
    this.home = options.home;
    this.signal = options.signal;
    this.#options = options;
  }

  /** The same git in another repository. */
  at(dir: string): Git {
    return new Git({ ...this.#options, dir });
  }

  /** The same git with less time. */
  within(signal: AbortSignal): Git {
    return new Git({ ...this.#options, signal: AbortSignal.any([this.signal, signal]) });
  }

  /** Runs git, and returns the outcome even if git fails. */
  run(args: readonly string[], call: GitCall = {}): Promise<GitOutcome> {
    const { settings = {}, isRemote = false, environment, signal, secrets: _s, accepts: _a, ...others } = call;
    const { config, lock } = this.#options;
    return runGit({
      ...others,
      args: [`--git-dir=${this.dir}`, ...args],
      environment: { ...gitEnvironment(config, settings, { home: this.home, isRemote }), ...environment },
      cwd: this.home,
      limits: { fileBytes: config.maxBytes, memoryBytes: config.memoryBytes },
      lock,
      signal: signal ?? this.signal,
    });
  }

  /** Runs git. Throws a DomainError that describes the failure. */
  async do(args: readonly string[], call: GitCall = {}): Promise<GitOutcome> {
    const outcome = await this.run(args, call);
    if (outcome.code === 0 || call.accepts?.test(outcome.said)) return outcome;
    throw describeFailure(outcome, call.secrets);
  }

  async text(args: readonly string[], call: GitCall = {}): Promise<string> {
    return String((await this.do(args, call)).output);
  }
}

/** Text for git's standard input, one item a line. */
export function asLines(items: readonly string[]): string {
  return items.map((item) => `${item}\n`).join('');
}
