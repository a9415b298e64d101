import { DomainError } from '../../base/errors.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import type { TreeRef } from '../../integrations/git/treeTypes.ts';
import type { ChangeInput } from '../../models/git/changes.ts';
import type { GitOrder } from '../../models/git/orders.ts';
import { isComputerGone, moveTree } from '../../models/git/placing.ts';
import type { Repository } from '../../models/git/repository.ts';
import type { GitDeps } from './deps.ts';

/**
 * The repository where its files are to be: on the computer that the order names, else on its own, and on the space's
 * default one where that was deleted. Throws 409 `GIT_TREE_ELSEWHERE`.
 */
export async function placeTree(
  deps: Pick<GitDeps, 'database' | 'gitTrees'>,
  repository: Repository,
  order: GitOrder,
  signal: AbortSignal,
): Promise<Repository> {
  const { computerId: named } = order.input as ChangeInput;
  const isGone = await isComputerGone(deps.database, repository);
  if (!isGone && (named === undefined || named === repository.computerId)) return repository;
  if (!isGone && (await hasFiles(deps, repository, signal))) {
    const detail = 'The repository’s files are on another computer. Delete their folder there first.';
    throw gitError('GIT_TREE_ELSEWHERE', detail);
  }
  return moveTree(deps.database, repository, named);
}

/** Whether there is a working tree: not where its computer was never used, or was deleted. */
export async function isFilled(
  gitTrees: Pick<GitDeps['gitTrees'], 'isFilled'>,
  tree: TreeRef,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return await gitTrees.isFilled(tree, signal);
  } catch (error) {
    const isEmpty = error instanceof DomainError && ['COMPUTER_NOT_RUNNING', 'GIT_TREE_MISSING'].includes(error.code);
    if (isEmpty) return false;
    throw error;
  }
}

/** Changes that are not committed may be among them. */
async function hasFiles(
  { gitTrees }: Pick<GitDeps, 'gitTrees'>,
  { spaceId, itemId, computerId, treePath: path, treeVersion }: Repository,
  signal: AbortSignal,
): Promise<boolean> {
  if (treeVersion === null) return false;
  return isFilled(gitTrees, { spaceId, itemId, computerId, path }, signal);
}
