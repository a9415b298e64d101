import { DomainError } from '../../../base/errors.ts';
import type { GitConfig } from '../../../config/git.ts';
import type { EgressDecision, EgressOwner } from '../../egress/guard.ts';
import type { EgressPassage, RunningEgressProxy } from '../../egress/startEgressProxy.ts';
import { answerHelper, helperSettings } from '../process/credentialHelper.ts';
import { remoteSettings } from '../process/environment.ts';
import { type GitOutcome, traced } from '../process/run.ts';
import { describeCredential, type ShownCredential } from '../rules/describeCredential.ts';
import { describeRefusal, withoutSecrets } from '../rules/describeFailure.ts';
import { gitError } from '../rules/failures.ts';
import { parseProgress } from '../rules/progress.ts';
import { parseRemoteRefs, type RemoteRefs } from '../rules/remoteRefs.ts';
import { parseRemoteUrl } from '../rules/remoteUrl.ts';
import type { GitHooks, GitPhase, GitProgress, RemoteSource } from '../types.ts';
import type { Git, GitCall } from './git.ts';
import { hasUnchecked, packsIn } from './repository.ts';

export interface RemoteOptions {
  config: GitConfig;
  proxy: RunningEgressProxy;
  ownerOf: () => Promise<EgressOwner>;
  source: RemoteSource;
  onProgress: GitHooks['onProgress'];
}

const progressMs = 250;

/** The cause of a failure that has left objects here that nobody has checked. */
export const notSmart = new Error('The remote does not speak the smart protocol.');

/** One operation's way to one remote: through the proxy, which counts, with its credential, and with its progress. */
export class Remote implements Disposable {
  readonly #options: RemoteOptions;
  readonly #passage: EgressPassage;
  readonly #secrets: Set<string>;
  /** Why there was no credential when git asked for one. */
  #noCredential: unknown;
  #shown: ShownCredential;
  #progress: GitProgress = {
    phase: 'connecting',
    percent: null,
    bytes: 0,
    objects: 0,
    totalObjects: null,
    keptObjects: 0,
  };
  #toldAt = 0;
  /** Why the last connection was refused, in the words of the space's log. */
  #refusal: string | undefined;

  constructor(options: RemoteOptions) {
    // Before anything is opened; the caller may have stored it unchecked.
    const { url } = parseRemoteUrl(options.source.url);
    this.#options = { ...options, source: { ...options.source, url } };
    this.#passage = options.proxy.open(() => this.#listeningOwner(), { maxBytes: options.config.maxBytes });
    this.#secrets = new Set([this.#passage.password]);
    this.#shown = options.source.credential === undefined ? 'none' : 'kept';
  }

  [Symbol.dispose](): void {
    this.#passage[Symbol.dispose]();
  }

  /** Whether it has brought all that one operation may. */
  get isSpent(): boolean {
    return this.#passage.exceeded;
  }

  /** Words of git's, without what it has shown to the remote, which may repeat it. */
  withoutSecrets(words: string): string {
    return withoutSecrets(words, this.#secrets);
  }

  /** Runs a command that talks to `origin`, and throws what its failure means. */
  async do(git: Git, args: readonly string[], call: GitCall = {}): Promise<GitOutcome> {
    const { config, source } = this.#options;
    const proxyUrl = this.#passage.environment.https_proxy ?? '';
    const before = await packsIn(git);
    this.#noCredential = undefined;
    let isSmart = false;
    let outcome: GitOutcome;
    try {
      outcome = await git.do(args, {
        ...call,
        isRemote: true,
        secrets: this.#secrets,
        settings: {
          ...remoteSettings(config, { url: source.url, proxyUrl }),
          ...(source.credential !== undefined && helperSettings),
          ...call.settings,
        },
        ...(source.credential !== undefined && {
          onHelper: (socket) =>
            answerHelper(socket, source, {
              onSecret: (secret) => {
                this.#secrets.add(secret);
                this.#shown = 'shown';
              },
              onFailure: (error) => {
                this.#noCredential = error;
              },
            }),
        }),
        environment: { GIT_TRACE_PACKET: '1' },
        onLine: (line) => {
          if (!traced.test(line)) this.#listen(line);
          else isSmart ||= /< (?:version 2|# service=git-(?:upload|receive)-pack)/.test(line);
        },
      });
    } catch (error) {
      throw this.#explain(error);
    }
    // Git also reads plain files of any web server, a page to sign in for one, and checks no object that it gets so.
    if (!isSmart || (await hasUnchecked(git, { before, isFiltered: !args.includes('--no-filter') }))) {
      throw gitError('GIT_REMOTE_FAILED', 'The remote does not answer as a git server does.', { cause: notSmart });
    }
    return outcome;
  }

  /** The owner, whose decisions we hear: of the proxy's answer git says nothing but its status. */
  async #listeningOwner(): Promise<EgressOwner> {
    const owner = await this.#options.ownerOf();
    const record = (decision: EgressDecision) => {
      this.#refusal = decision.refusal ?? undefined;
      return owner.record(decision);
    };
    return { ...owner, record };
  }

  /** Git does not know why the proxy has ended its connection, or never made it, nor why it got no credential. */
  #explain(error: unknown): unknown {
    if (this.#noCredential !== undefined) return this.#noCredential;
    if (!(error instanceof DomainError)) return error;
    if (this.#refusal !== undefined && (error.code === 'GIT_REMOTE_FORBIDDEN' || error.code === 'GIT_REMOTE_FAILED')) {
      return gitError(error.code, describeRefusal(this.#refusal), { cause: error });
    }
    if (this.isSpent) {
      const mib = Math.round(this.#options.config.maxBytes / 1_048_576);
      return gitError('GIT_TOO_LARGE', `The remote sends more than ${mib} MiB.`, { cause: error });
    }
    return describeCredential(error, this.#shown);
  }

  /** A phase of our own, between git's. */
  tell(phase: GitPhase, more: Partial<GitProgress> = {}): void {
    this.#progress = { ...this.#progress, percent: null, ...more, phase };
    this.#report(true);
  }

  #listen(line: string): void {
    const said = parseProgress(line);
    if (said === undefined) return;
    const isNew = said.phase !== this.#progress.phase || said.percent === 100;
    this.#progress = { ...this.#progress, ...said };
    this.#report(isNew);
  }

  #report(isNow: boolean): void {
    const now = performance.now();
    if (!isNow && now - this.#toldAt < progressMs) return;
    this.#toldAt = now;
    this.#options.onProgress?.({ ...this.#progress, bytes: this.#passage.bytes });
  }
}

const maxRefBytes = 600;

/** Asks what there is. It costs a round trip, and says early and clearly that a remote cannot be cloned. */
export async function listRemote(git: Git, remote: Remote, config: GitConfig): Promise<RemoteRefs> {
  const { output } = await remote.do(
    git,
    ['ls-remote', '--quiet', '--symref', '--end-of-options', 'origin', 'HEAD', 'refs/heads/*', 'refs/tags/*'],
    { maxOutputBytes: config.maxRefs * maxRefBytes },
  );
  return parseRemoteRefs(output, config);
}
