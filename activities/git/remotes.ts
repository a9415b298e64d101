import { DomainError } from '../../base/errors.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import { parseRemoteUrl } from '../../integrations/git/rules/remoteUrl.ts';
import type { GitCredential, RemoteSource } from '../../integrations/git/types.ts';
import type { MintedToken } from '../../integrations/gitHosting/provider.ts';
import { covers } from '../../models/git/credentials.ts';
import { findInstallationRepository, type InstallationKey } from '../../models/git/installationRows.ts';
import type { Repository } from '../../models/git/repository.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import type { GitDeps } from './ordered.ts';

type RemoteDeps = Pick<GitDeps, 'database' | 'gitCredentials' | 'gitHosting'>;

/**
 * A repository's remote, with the credential that git shows when the server asks. A token of a hosting provider is for
 * this repository only, to read or to write, and ends with the source: hold the source by `await using`.
 */
export function remoteOf(
  deps: RemoteDeps,
  repository: Repository,
  purpose: 'read' | 'write' = 'read',
): RemoteSource & AsyncDisposable {
  const { url, credentialId } = repository;
  const tokens = new MintedTokens(deps, purpose);
  return {
    url,
    ...(credentialId !== null && { credential: () => credentialOf(deps, { ...repository, credentialId }, tokens) }),
    [Symbol.asyncDispose]: () => tokens.revoke(),
  };
}

/**
 * Reads the credential anew each time: it may have been removed or suspended. Throws 422 `GIT_AUTHENTICATION_FAILED`.
 */
async function credentialOf(
  { gitCredentials }: RemoteDeps,
  { spaceId, credentialId, url }: { spaceId: string; credentialId: string; url: string },
  tokens: MintedTokens,
): Promise<GitCredential> {
  try {
    const credential = await gitCredentials.get(spaceId, credentialId);
    const remote = parseRemoteUrl(url);
    if (!covers(credential, remote)) throw refused('The credential is not for this repository.');
    if (credential.status !== 'active') throw refused(`The credential is ${credential.status} at its provider.`);
    const { username, provider, installationId } = credential;
    if (provider !== null && installationId !== null) {
      return { username, password: await tokens.tokenFor({ spaceId, provider, installationId }, remote.path) };
    }
    const password = await gitCredentials.secretOf(credential);
    if (password === undefined) throw refused('The credential has no secret.');
    return { username, password };
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'notFound') throw refused('The credential was removed.');
    throw error;
  }
}

/** Shorter than the hour that a token lives. A long clone gets a new token. */
const reuseMs = 45 * 60_000;
const passingKinds: readonly string[] = ['unavailable', 'upstreamTimeout', 'rateLimited'];

/** The tokens of one operation. They are only in memory, and end with the operation. */
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
   * A token for one repository that was proven when the installation was connected. Throws 422
   * `GIT_AUTHENTICATION_FAILED`, 502 `GIT_REMOTE_FAILED`.
   */
  async tokenFor(key: InstallationKey, remotePath: string): Promise<string> {
    const provider = this.#deps.gitHosting.provider;
    if (provider === undefined || provider.name !== key.provider) {
      throw refused('The provider of the credential is not set up on this installation.');
    }
    const path = remotePath.replace(/\.git$/, '');
    const [, name = '', ...more] = path.split('/');
    const found = more.length > 0 ? undefined : await findInstallationRepository(this.#deps.database, key, path);
    if (found === undefined || name === '') {
      throw refused(
        'The user who connected the installation had no access to this repository. Connect the installation again.',
      );
    }
    const mayWrite = this.#purpose === 'write';
    if (mayWrite && !found.mayWrite) {
      throw refused('The user who connected the installation may not change this repository.');
    }
    const last = this.#minted.at(-1);
    if (last !== undefined && performance.now() - last.at < reuseMs) return last.token;
    const repository = found.repositoryId === null ? { name } : { id: found.repositoryId };
    const minted = await provider
      .mint({ installationId: key.installationId, repository, path, mayWrite, onBehalfOf: found.provenBy })
      .catch((error: unknown) => Promise.reject(explained(error)));
    await keepOutOfLogs([minted.token]);
    if (this.#hasEnded) {
      // Git was ended while the provider made the token.
      await minted.revoke();
      throw refused('The operation has ended.');
    }
    this.#minted.push({ ...minted, at: performance.now() });
    return minted.token;
  }

  /** Ends all tokens, also one that the provider is still making. */
  async revoke(): Promise<void> {
    this.#hasEnded = true;
    await Promise.all(this.#minted.splice(0).map((minted) => minted.revoke()));
  }
}

/** A provider's failure as a failure of the clone. */
function explained(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  if (passingKinds.includes(error.kind)) return gitError('GIT_REMOTE_FAILED', error.message, { cause: error });
  return refused(error.message, error);
}

function refused(why: string, cause?: unknown): DomainError {
  return gitError('GIT_AUTHENTICATION_FAILED', why, { cause });
}
