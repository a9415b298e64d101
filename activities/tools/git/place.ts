import type { GitTrees, TreeRef } from '../../../integrations/git/types.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { driveContainerId } from '../../../models/drive/containers.ts';
import { parsePath } from '../../../models/drive/names.ts';
import { findByPath } from '../../../models/drive/place.ts';
import { DomainError } from '../../../models/errors.ts';
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

export const repositoryProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  description: 'The path of the repository in the drive, such as /tool.',
};

export const revisionProperty = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[^-\\u0000-\\u0020]\\S*$' };

/** The repository that a call means: of the turn’s own space, whatever the model says. */
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

export function treeOf({ spaceId, itemId, computerId, treePath: path }: Repository): TreeRef {
  return { spaceId, itemId, computerId, path };
}
