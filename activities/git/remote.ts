import { gitError } from '../../integrations/git/rules/failures.ts';
import { parseRemoteUrl } from '../../integrations/git/rules/remoteUrl.ts';
import type { GitCredential, RemoteSource } from '../../integrations/git/types.ts';
import { DomainError } from '../../models/errors.ts';
import { covers } from '../../models/git/credentials.ts';
import type { Repository } from '../../models/git/repository.ts';
import type { GitDeps } from './deps.ts';

/** Where a repository comes from, with what its server is shown when it asks. */
export function remoteOf(deps: Pick<GitDeps, 'gitCredentials'>, repository: Repository): RemoteSource {
  const { url, credentialId } = repository;
  return {
    url,
    ...(credentialId !== null && { credential: () => credentialOf(deps, { ...repository, credentialId }) }),
  };
}

/** Read anew each time: it may have been removed, or suspended, since. Throws 422 `GIT_AUTHENTICATION_FAILED`. */
async function credentialOf(
  { gitCredentials }: Pick<GitDeps, 'gitCredentials'>,
  { spaceId, credentialId, url }: { spaceId: string; credentialId: string; url: string },
): Promise<GitCredential> {
  try {
    const credential = await gitCredentials.get(spaceId, credentialId);
    if (!covers(credential, parseRemoteUrl(url))) throw refused('The credential is not for this repository.');
    if (credential.status !== 'active') throw refused(`The credential is ${credential.status} at its provider.`);
    const password = await gitCredentials.secretOf(credential);
    if (password === undefined) throw refused('The credential’s provider is not set up here.');
    return { username: credential.username, password };
  } catch (error) {
    if (error instanceof DomainError && error.kind === 'notFound') throw refused('The credential was removed.');
    throw error;
  }
}

function refused(why: string): DomainError {
  return gitError('GIT_AUTHENTICATION_FAILED', why);
}
