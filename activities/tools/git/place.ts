import { DomainError } from '../../../base/errors.ts';
import type { GitTrees, TreeRef } from '../../../integrations/git/treeTypes.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { driveContainerId } from '../../../models/drive/containers.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { findByPath } from '../../../models/drive/place.ts';
import { getDraft } from '../../../models/git/drafts.ts';
import { getRepository, type Repository, requireReady } from '../../../models/git/repository.ts';
import type { Identity } from '../../../models/identity/index.ts';
import type { CommonDeps } from '../../deps.ts';

export interface GitToolDeps extends Pick<CommonDeps, 'config' | 'database' | 'workflows'> {
  gitTrees: GitTrees;
  identity: Pick<Identity, 'members' | 'keys' | 'users'>;
}

export interface RepositoryInput {
  repository: string;
}

export interface TreeInput extends RepositoryInput {
  draft?: string;
}

export const repositoryProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  description: 'The path of the repository in the drive, such as /tool.',
};

export const draftProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 64,
  description:
    'The id (drf_…) of a draft of the repository. Uses the draft’s working tree instead of the repository’s own.',
};

export const revisionProperty = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[^-\\u0000-\\u0020]\\S*$' };

/** The repository that a call names. It is always a repository of the turn’s own space. */
export async function repositoryAt(
  { database }: Pick<GitToolDeps, 'database'>,
  { spaceId }: Turn,
  { repository: path }: RepositoryInput,
): Promise<Repository> {
  const found = await findByPath(database, { spaceId, containerId: driveContainerId, names: parsePath(path) });
  if (found === undefined) throw new DomainError('notFound', 'NOT_FOUND', `There is nothing at ${path}.`);
  if (found.item.kind !== 'repository') {
    throw new DomainError('conflict', 'NOT_A_REPOSITORY', `${path} is a ${found.item.kind}, not a repository.`);
  }
  const repository = await getRepository(database, spaceId, found.item.id);
  requireReady(repository);
  return repository;
}

/** The call's working tree: that of a draft, or the repository's own. */
export async function treeOf(
  { database }: Pick<GitToolDeps, 'database'>,
  { spaceId, itemId, ...own }: Repository,
  { draft: draftId }: TreeInput,
): Promise<TreeRef> {
  const draft = draftId === undefined ? undefined : await getDraft(database, itemId, draftId);
  const { computerId, treePath: path } = draft ?? own;
  return { spaceId, itemId: draft?.id ?? itemId, computerId, path };
}
