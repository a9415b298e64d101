import { DomainError } from '../../base/errors.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import type { MintedToken } from '../../integrations/gitHosting/provider.ts';
import { findInstallationRepository, type InstallationKey } from '../../models/git/installationRows.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import type { GitDeps } from './deps.ts';

/** Less than the hour that a token lives: a long clone asks again. */
const reuseMs = 45 * 60_000;
const passingKinds: readonly string[] = ['unavailable', 'upstreamTimeout', 'rateLimited'];

/** The tokens that one operation has had made. They are in its memory alone, and end with it. */
export class MintedTokens {
  readonly #deps: Pick<GitDeps, 'database' | 'gitHosting'>;
  readonly #purpose: 'read' | 'write';
  readonly #minted: (MintedToken & { at: number })[] = [];
  #hasEnded = false;

  constructor(deps: Pick<GitDeps, 'database' | 'gitHosting'>, purpose: 'read' | 'write') {
    this.#deps = deps;
    this.#purpose = purpose;
  }

  /**
   * A token for one repository: what was proven when the installation was connected, whatever else the installation
   * has. Throws 422 `GIT_AUTHENTICATION_FAILED`, 502 `GIT_REMOTE_FAILED`.
   */
  async tokenFor(key: InstallationKey, remotePath: string): Promise<string> {
    const provider = this.#deps.gitHosting.provider;
    if (provider === undefined || provider.name !== key.provider) {
      throw refused('The credential’s provider is not set up here.');
    }
    const path = remotePath.replace(/\.git$/, '');
    const [, name = '', ...more] = path.split('/');
    const found = more.length > 0 ? undefined : await findInstallationRepository(this.#deps.database, key, path);
    if (found === undefined || name === '') {
      throw refused('Whoever has connected the installation has shown no access to this repository. Connect it again.');
    }
    const mayWrite = this.#purpose === 'write';
    if (mayWrite && !found.mayWrite) {
      throw refused('Whoever has connected the installation may not change this repository.');
    }
    const last = this.#minted.at(-1);
    if (last !== undefined && performance.now() - last.at < reuseMs) return last.token;
    const repository = found.repositoryId === null ? { name } : { id: found.repositoryId };
    const minted = await provider
      .mint({ installationId: key.installationId, repository, path, mayWrite, onBehalfOf: found.provenBy })
      .catch((error: unknown) => Promise.reject(explained(error)));
    keepOutOfLogs([minted.token]);
    if (this.#hasEnded) {
      // Git was ended while it waited for the answer.
      await minted.revoke();
      throw refused('The operation has ended.');
    }
    this.#minted.push({ ...minted, at: performance.now() });
    return minted.token;
  }

  /** Ends them, and those that are still being made. */
  async revoke(): Promise<void> {
    this.#hasEnded = true;
    await Promise.all(this.#minted.splice(0).map((minted) => minted.revoke()));
  }
}

/** What the provider's failure means for who clones. */
function explained(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  if (passingKinds.includes(error.kind)) return gitError('GIT_REMOTE_FAILED', error.message, { cause: error });
  return refused(error.message, error);
}

function refused(why: string, cause?: unknown): DomainError {
  return gitError('GIT_AUTHENTICATION_FAILED', why, { cause });
}
