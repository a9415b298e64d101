import type { GitHooks } from '../../integrations/git/types.ts';
import { findOrder, type GitOrder, isCalledOff, noteFailure } from '../../models/git/orders.ts';
import { findRepository, type Repository } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import type { GitDeps } from './deps.ts';
import { describe, failureOf, notOrdered, wasCalledOff, withCommitted } from './failure.ts';
import { ProgressWriter } from './progress.ts';
import { requireAuthority } from './requireAuthority.ts';

const watchIntervalMs = 2_000;

/** An order's step. */
export interface RepositoryWork {
  itemId: string;
  orderId: string;
}

export interface OrderedWork {
  repository: Repository;
  order: GitOrder;
  hooks: GitHooks;
}

/** Makes steps of what is ordered: with heartbeats and progress, for as long as the order and the repository are there. */
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
    const signal = AbortSignal.any([heartbeat.cancelled, progress.signal, watch.signal]);
    try {
      await requireAuthority(deps, repository, order);
      await act({ repository, order, hooks: { signal, onProgress: progress.show } });
    } catch (error) {
      heartbeat.cancelled.throwIfAborted();
      if (progress.signal.aborted) throw notOrdered();
      if (watch.signal.aborted) throw wasCalledOff();
      logger.warn({ err: error, itemId, orderId }, 'A step of a repository could not be done.');
      await noteFailure(database, orderId, withCommitted(describe(error), order)).catch(() => undefined);
      throw failureOf(error);
    } finally {
      await progress.settled();
    }
  };
}
