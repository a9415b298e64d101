import { gitError } from '../../integrations/git/rules/failures.ts';
import type { MirrorState, RepositoryRef } from '../../integrations/git/types.ts';
import type { GitDeps } from './deps.ts';

/** What is saved of a repository that has been cloned. */
export async function stateOf(
  { gitMirrors }: Pick<GitDeps, 'gitMirrors'>,
  repository: RepositoryRef,
): Promise<MirrorState> {
  const state = await gitMirrors.state(repository);
  if (state === undefined) throw gitError('GIT_FAILED', 'Nothing has been saved of the repository.');
  return state;
}
