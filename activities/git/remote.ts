import { DomainError } from '../../base/errors.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import { parseRemoteUrl } from '../../integrations/git/rules/remoteUrl.ts';
import type { GitCredential, RemoteSource } from '../../integrations/git/types.ts';
import { covers } from '../../models/git/credentials.ts';
import type { Repository } from '../../models/git/repository.ts';
import type { GitDeps } from './deps.ts';
import { MintedTokens } from './mintedTokens.ts';

type RemoteDeps = Pick<GitDeps, 'database' | 'gitCredentials' | 'gitHosting'>;

/**
 * Where a repository comes from, with what its server is shown when it asks. A token that a hosting provider makes for it
 * is good for this repository alone, to read or to write, and ends with the source: hold it by `await using`.
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

/** Read anew each time: it may have been removed, or suspended, since. Throws 422 `GIT_AUTHENTICATION_FAILED`. */
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

function refused(why: string): DomainError {
  return gitError('GIT_AUTHENTICATION_FAILED', why);
}
