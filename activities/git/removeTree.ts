import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import type { Repository } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import type { GitDeps } from './deps.ts';

/** How long a computer may be paused, or its host away, until its files are left to it. */
const patienceMs = 86_400_000;

/** Removes the working tree of a repository whose item is gone, if there is one. Nothing is woken for that. */
export async function removeTree(
  { gitTrees, logger }: GitDeps,
  repository: Pick<Repository, 'itemId' | 'spaceId' | 'computerId' | 'treePath' | 'treeVersion' | 'removedAt'>,
): Promise<void> {
  const { itemId, spaceId, computerId, treePath: path, treeVersion, removedAt } = repository;
  if (treeVersion === null || removedAt === null) return;
  using heartbeat = keepAlive();
  try {
    await gitTrees.remove({ itemId, spaceId, computerId, path }, heartbeat.cancelled);
  } catch (error) {
    heartbeat.cancelled.throwIfAborted();
    // Its files went with the computer.
    if (error instanceof DomainError && error.code === 'GIT_TREE_MISSING') return;
    if (Date.now() - removedAt.getTime() > patienceMs) {
      logger.warn({ err: error, itemId, computerId }, 'The working tree of a removed repository is left where it was.');
      return;
    }
    const code = error instanceof DomainError ? error.code : 'GIT_FAILED';
    throw ApplicationFailure.create({ type: code, message: code });
  }
}
