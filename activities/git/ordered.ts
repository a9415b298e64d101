import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import type { LiveComputers } from '../../integrations/computers/liveComputers.ts';
import { gitError, mayPass } from '../../integrations/git/rules/failures.ts';
import type { GitTrees } from '../../integrations/git/treeTypes.ts';
import type { GitHooks, GitMirrors } from '../../integrations/git/types.ts';
import type { GitHosting } from '../../integrations/gitHosting/index.ts';
import { isAway } from '../../models/database/unavailable.ts';
import type { GitCredentials } from '../../models/git/credentials.ts';
import { findOrder, type GitOrder, type GitOrderKind, isCalledOff, noteFailure } from '../../models/git/orders.ts';
import { findRepository, type Repository } from '../../models/git/repository.ts';
import { calledOff } from '../../models/git/steps.ts';
import { standingOf } from '../../models/identity/authority.ts';
import type { Identity } from '../../models/identity/index.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { operationModels } from '../../models/operations/operation.ts';
import type { CommonDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import { ProgressWriter } from './progress.ts';

export interface GitDeps extends CommonDeps {
  gitMirrors: GitMirrors;
  gitTrees: GitTrees;
  liveComputers: LiveComputers;
  gitCredentials: GitCredentials;
  gitHosting: GitHosting;
  identity: Pick<Identity, 'members' | 'keys'>;
}

const watchIntervalMs = 2_000;
/** Attempts for a step whose failure may pass. */
const attempts = 3;

/** One step of an order. */
export interface RepositoryWork {
  itemId: string;
  orderId: string;
  /** The place of the step in its order. Absent in workflows from before it was said. */
  at?: number | undefined;
}

export interface OrderedWork {
  repository: Repository;
  order: GitOrder;
  hooks: GitHooks;
}

/** Runs the steps of orders, with heartbeats and progress, until the order is called off or the repository is gone. */
export function createOrdered(deps: GitDeps) {
  const { database, logger } = deps;
  return async function forOrdered(
    { itemId, orderId }: RepositoryWork,
    act: (work: OrderedWork) => Promise<void>,
  ): Promise<void> {
    using heartbeat = keepAlive();
    const [repository, order] = [await findRepository(database, itemId), await findOrder(database, orderId)];
    if (repository === undefined || repository.removedAt !== null || order?.itemId !== itemId) throw notOrdered();
    const progress = new ProgressWriter(deps, itemId);
    const options = { logger, subject: { orderId }, intervalMs: watchIntervalMs };
    using watch = new UnwantedWatch(() => isCalledOff(database, orderId), options);
    const signal = AbortSignal.any([heartbeat.cancelled, watch.signal]);
    try {
      await requireAuthority(deps, repository, order);
      await act({ repository, order, hooks: { signal, onProgress: progress.show } });
    } catch (error) {
      heartbeat.cancelled.throwIfAborted();
      // The workflow may not know yet that the order was called off.
      if (watch.signal.aborted) throw endedBy(calledOff);
      logger.warn({ err: error, itemId, orderId }, 'A step of a repository could not be done.');
      await noteFailure(database, orderId, describe(error, order)).catch(() => undefined);
      throw failureOf(error);
    } finally {
      await progress.settled();
    }
  };
}

/** The orders of people and agents; Atrium makes the others by itself. */
const asked: readonly GitOrderKind[] = [
  'cloneRepository',
  'retryClone',
  'fillRepository',
  'createBranch',
  'commitChanges',
  'checkoutBranch',
  'pushRepository',
  'pullRepository',
  'createDraft',
  'commitDraft',
  'mergeDraft',
];

/**
 * An order may wait for hours. Throws 403 `GIT_ORDER_FORBIDDEN` if its caller is no longer an editor of the space, or
 * the caller's API key was revoked or has expired.
 */
async function requireAuthority(
  { database, identity }: GitDeps,
  { spaceId }: Repository,
  { id, kind, apiKeyId, result }: GitOrder,
): Promise<void> {
  // An order that has a result is finished in any case.
  if (!asked.includes(kind) || result !== null) return;
  const operation = await operationModels(database).Operation.findByPk(id);
  if (operation === null) throw notOrdered();
  const { userId } = operation;
  const { role, keyHolds } = await standingOf(identity, { spaceId, userId, apiKeyId });
  if (role !== undefined && isAtLeast(role, 'editor') && keyHolds) return;
  throw gitError('GIT_ORDER_FORBIDDEN', 'The user who asked for this operation is no longer allowed to do it.');
}

/** Describes a failure for people. A merge also names the commit that it has made before: that commit stays. */
function describe(error: unknown, { result }: GitOrder): { code: string; detail: string } {
  const code = codeOf(error);
  const detail = error instanceof DomainError ? error.message : 'The operation failed; the server’s log says why.';
  const committed = result?.committed;
  if (typeof committed !== 'string') return { code, detail };
  return {
    code,
    detail: `${detail} The uncommitted changes of the draft are now in commit ${committed.slice(0, 10)}.`,
  };
}

export function codeOf(error: unknown): string {
  return error instanceof DomainError ? error.code : 'GIT_FAILED';
}

/**
 * A failure for the workflow. The step is retried while a part of Atrium is unreachable, and a few times in other
 * cases.
 */
function failureOf(error: unknown): ApplicationFailure {
  const code = codeOf(error);
  // A slot on the computer becomes free when other processes end.
  const isFull = code === 'FILES_BUSY' || code === 'TOO_MANY_PROCESSES';
  const mayBeAgain = isAway(error) || isFull || (mayPass(error) && activityInfo().attempt < attempts);
  return ApplicationFailure.create({ type: code, message: code, nonRetryable: !mayBeAgain });
}

/** The work is no longer wanted. */
export const notOrdered = (): ApplicationFailure => endedBy('NOT_ORDERED');

function endedBy(code: string): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message: code, nonRetryable: true });
}
