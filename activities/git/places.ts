import { ApplicationFailure } from '@temporalio/activity';
import type { ComputerRef, WokenBy } from '../../integrations/computers/liveComputers.ts';
import { gitError } from '../../integrations/git/rules/failures.ts';
import type { TreeRef } from '../../integrations/git/treeTypes.ts';
import type { MirrorState, RepositoryRef } from '../../integrations/git/types.ts';
import type { ChangeInput } from '../../models/git/changes.ts';
import type { GitOrder } from '../../models/git/orders.ts';
import { isComputerGone, moveTree } from '../../models/git/placing.ts';
import type { Repository } from '../../models/git/repository.ts';
import { operationModels } from '../../models/operations/operation.ts';
import { keepAlive } from '../keepAlive.ts';
import { codeOf, type GitDeps, notOrdered } from './ordered.ts';

/**
 * Decides on which computer a repository's files are: the one that the order names, else their own, or the space's
 * default one if their own was deleted. Returns the repository with that place. Throws 409 `GIT_TREE_ELSEWHERE`.
 */
export async function placeTree(
  { database, gitTrees }: Pick<GitDeps, 'database' | 'gitTrees'>,
  repository: Repository,
  order: GitOrder,
  signal: AbortSignal,
): Promise<Repository> {
  const { computerId: named } = order.input as ChangeInput;
  const { spaceId, itemId, computerId, treePath: path, treeVersion } = repository;
  const isGone = await isComputerGone(database, repository);
  if (!isGone && (named === undefined || named === computerId)) return repository;
  // The files may include uncommitted changes.
  const mayHaveFiles = !isGone && treeVersion !== null;
  if (mayHaveFiles && (await isFilled(gitTrees, { spaceId, itemId, computerId, path }, signal))) {
    const detail = 'The repository’s files are on another computer. Delete their folder there first.';
    throw gitError('GIT_TREE_ELSEWHERE', detail);
  }
  return moveTree(database, repository, named);
}

/** Whether there is a working tree. There is none if its computer was never used, or was deleted. */
export async function isFilled(
  gitTrees: Pick<GitDeps['gitTrees'], 'isFilled'>,
  tree: TreeRef,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return await gitTrees.isFilled(tree, signal);
  } catch (error) {
    if (['COMPUTER_NOT_RUNNING', 'GIT_TREE_MISSING'].includes(codeOf(error))) return false;
    throw error;
  }
}

/**
 * Makes sure that git can run on a tree's computer. A computer that was never used has no files yet, so it is woken.
 */
export async function reach(deps: GitDeps, tree: ComputerRef, order: GitOrder): Promise<void> {
  try {
    await deps.liveComputers.work(tree);
  } catch (error) {
    if (codeOf(error) !== 'COMPUTER_NOT_RUNNING') throw error;
    await deps.liveComputers.awake(tree, await askerOf(deps, order));
  }
}

/** The user who asked for an order. */
export async function askerOf({ database }: Pick<GitDeps, 'database'>, { id }: GitOrder): Promise<WokenBy> {
  const operation = await operationModels(database).Operation.findByPk(id);
  if (operation === null) throw notOrdered();
  return { userId: operation.userId, credentialId: null, address: null };
}

/**
 * How long a removal waits for a computer that is paused, or whose host is unreachable. Then the files are left there.
 */
const patienceMs = 86_400_000;

/** Removes the working tree of a removed repository, if there is one. No computer is woken for that. */
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
    const code = codeOf(error);
    // The files went with the computer.
    if (code === 'GIT_TREE_MISSING') return;
    if (Date.now() - removedAt.getTime() > patienceMs) {
      logger.warn({ err: error, itemId, computerId }, 'The working tree of a removed repository is left where it was.');
      return;
    }
    throw ApplicationFailure.create({ type: code, message: code });
  }
}

/** The saved state of a cloned repository. */
export async function stateOf(
  { gitMirrors }: Pick<GitDeps, 'gitMirrors'>,
  repository: RepositoryRef,
): Promise<MirrorState> {
  const state = await gitMirrors.state(repository);
  if (state === undefined) throw gitError('GIT_FAILED', 'No saved copy of the repository exists.');
  return state;
}
