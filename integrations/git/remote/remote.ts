import { DomainError } from '../../../base/errors.ts';
import type { GitConfig } from '../../../config/git.ts';
import type { EgressDecision, EgressOwner } from '../../egress/guard.ts';
import type { EgressPassage, RunningEgressProxy } from '../../egress/startEgressProxy.ts';
import { hasUnchecked, packsIn } from '../mirror/repository.ts';
import { remoteSettings } from '../process/environment.ts';
import type { Git, GitCall } from '../process/git.ts';
import { type GitOutcome, traced } from '../process/run.ts';
import { describeRefusal } from '../rules/describeFailure.ts';
import { gitError, noGitServer } from '../rules/failures.ts';
import { parseRemoteRefs, type RemoteRefs } from '../rules/remoteRefs.ts';
import { parseRemoteUrl } from '../rules/remoteUrl.ts';
import type { GitHooks, GitPhase, GitProgress, RemoteSource } from '../types.ts';
import { answerHelper, describeCredential, helperSettings, type ShownCredential } from './credential.ts';

export interface RemoteOptions {
  config: GitConfig;
  proxy: RunningEgressProxy;
  ownerOf: () => Promise<EgressOwner>;
  source: RemoteSource;
  onProgress: GitHooks['onProgress'];
}

const progressMs = 250;

/** The cause of a failure that may have left unchecked objects here. */
export const notSmart = new Error('The remote does not speak the smart protocol.');

/** One operation's access to one remote: through the egress proxy, with a credential, and reporting progress. */
export class Remote implements Disposable {
  readonly #options: RemoteOptions;
  readonly #passage: EgressPassage;
  /** What no words of git may contain: the remote may repeat the credential. */
  readonly secrets: Set<string>;
  /** Why there was no credential when git last asked for one. */
  #noCredential: unknown;
  #shown: ShownCredential;
  #progress: GitProgress = {
    ...{ phase: 'connecting', percent: null, bytes: 0, objects: 0, totalObjects: null, keptObjects: 0 },
  };
  #toldAt = 0;
  /** Why the last connection was refused, in the words of the space's egress log. */
  #refusal: string | undefined;

  constructor(options: RemoteOptions) {
    // Checked before anything is opened: the caller may have stored an unchecked URL.
    const { url } = parseRemoteUrl(options.source.url);
    this.#options = { ...options, source: { ...options.source, url } };
    this.#passage = options.proxy.open(() => this.#listeningOwner(), { maxBytes: options.config.maxBytes });
    this.secrets = new Set([this.#passage.password]);
    this.#shown = options.source.credential === undefined ? 'none' : 'kept';
  }

  [Symbol.dispose](): void {
    this.#passage[Symbol.dispose]();
  }

  /** Whether the remote has sent as many bytes as one operation may take. */
  get isSpent(): boolean {
    return this.#passage.exceeded;
  }

  /** Runs a command that talks to `origin`. Throws a DomainError that describes the failure. */
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
        secrets: this.secrets,
        settings: {
          ...remoteSettings(config, { url: source.url, proxyUrl }),
          ...(source.credential !== undefined && helperSettings),
          ...call.settings,
        },
        ...(source.credential !== undefined && {
          onHelper: (socket) =>
            answerHelper(socket, source, {
              onSecret: (secret) => {
                this.secrets.add(secret);
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
    // Git also reads plain files of any web server, such as a login page, and does not check objects from there.
    if (!isSmart || (await hasUnchecked(git, { before, isFiltered: !args.includes('--no-filter') }))) {
      throw gitError(...noGitServer, { cause: notSmart });
    }
    return outcome;
  }

  /** The owner, with its refusals noted: git reports only the status of the proxy's answer. */
  async #listeningOwner(): Promise<EgressOwner> {
    const owner = await this.#options.ownerOf();
    const record = (decision: EgressDecision) => {
      this.#refusal = decision.refusal ?? undefined;
      return owner.record(decision);
    };
    return { ...owner, record };
  }

  /** Adds what git does not know: why the proxy refused or ended the connection, or why there was no credential. */
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

  /** Reports a phase of Atrium's own, between git's phases. */
  tell(phase: GitPhase, more: Partial<GitProgress> = {}): void {
    this.#progress = { ...this.#progress, percent: null, ...more, phase };
    this.#report(true);
  }

  #listen(line: string): void {
    const said = parseProgress(line);
    if (said === undefined) return;
    const isNow = said.phase !== this.#progress.phase || said.percent === 100;
    this.#progress = { ...this.#progress, ...said };
    this.#report(isNow);
  }

  #report(isNow: boolean): void {
    const now = performance.now();
    if (!isNow && now - this.#toldAt < progressMs) return;
    this.#toldAt = now;
    this.#options.onProgress?.({ ...this.#progress, bytes: this.#passage.bytes });
  }
}

const maxRefBytes = 600;

/** Lists the remote's refs. The round trip tells early and clearly that a remote cannot be cloned. */
export async function listRemote(git: Git, remote: Remote, config: GitConfig): Promise<RemoteRefs> {
  const { output } = await remote.do(
    git,
    ['ls-remote', '--quiet', '--symref', '--end-of-options', 'origin', 'HEAD', 'refs/heads/*', 'refs/tags/*'],
    { maxOutputBytes: config.maxRefs * maxRefBytes },
  );
  return parseRemoteRefs(output, config);
}

const phases: Readonly<Record<string, GitPhase>> = {
  'Enumerating objects': 'counting',
  'Counting objects': 'counting',
  'Compressing objects': 'counting',
  'Finding sources': 'counting',
  'Receiving objects': 'receiving',
  'Unpacking objects': 'receiving',
  'Indexing objects': 'resolving',
  'Resolving deltas': 'resolving',
  'Checking connectivity': 'resolving',
  'Writing objects': 'sending',
};

/** The progress in a line of git's; undefined for other lines. */
function parseProgress(line: string): Pick<GitProgress, 'phase' | 'percent' | 'objects' | 'totalObjects'> | undefined {
  const match = /^(?:remote: )?([A-Z][a-z]+ [a-z]+): +(?:(\d{1,3})% \((\d+)\/(\d+)\)|(\d+))/.exec(line);
  const phase = phases[match?.[1] ?? ''];
  if (match === null || phase === undefined) return undefined;
  const [, , percent, objects, total, sum] = match;
  if (percent === undefined) return { phase, percent: null, objects: Number(sum), totalObjects: null };
  return { phase, percent: Math.min(100, Number(percent)), objects: Number(objects), totalObjects: Number(total) };
}
