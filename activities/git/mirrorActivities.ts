import type { CloneSource } from '../../integrations/git/types.ts';
import { recordClone } from '../../models/git/cloning.ts';
import { findOrder, noteFailure } from '../../models/git/orders.ts';
import { forgetRepository } from '../../models/git/removal.ts';
import { findRepository, type Repository } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import type { GitDeps } from './deps.ts';
import { describe, failureOf, notOrdered } from './failure.ts';
import { ProgressWriter } from './progress.ts';
import { remoteOf } from './remote.ts';

/** An order's step. */
export interface RepositoryWork {
  itemId: string;
  orderId: string;
}

/** What is done in repositories' mirrors. Each may run twice, and does nothing that nobody has ordered. */
export function createMirrorActivities(deps: GitDeps) {
  const { database, gitMirrors, logger } = deps;

  /** Does the work with heartbeats and progress, for as long as the order and the repository are there. */
  async function forOrdered(
    { itemId, orderId }: RepositoryWork,
    act: (repository: Repository, hooks: { signal: AbortSignal; onProgress: ProgressWriter['show'] }) => Promise<void>,
  ): Promise<void> {
    using heartbeat = keepAlive();
    const [repository, order] = [await findRepository(database, itemId), await findOrder(database, orderId)];
    if (repository === undefined || repository.removedAt !== null || order?.itemId !== itemId) throw notOrdered();
    const progress = new ProgressWriter(deps, itemId);
    const signal = AbortSignal.any([heartbeat.cancelled, progress.signal]);
    try {
      await act(repository, { signal, onProgress: progress.show });
    } catch (error) {
      heartbeat.cancelled.throwIfAborted();
      if (progress.signal.aborted) throw notOrdered();
      logger.warn({ err: error, itemId, orderId }, 'A step of a repository could not be done.');
      await noteFailure(database, orderId, describe(error)).catch(() => undefined);
      throw failureOf(error);
    } finally {
      await progress.settled();
    }
  }

  return {
    /** Brings a repository here. What arrived of an attempt before is not sent again. */
    cloneMirror: (work: RepositoryWork): Promise<void> =>
      forOrdered(work, async (repository, hooks) => {
        const { branch, depth, filter } = repository;
        const source: CloneSource = { ...remoteOf(deps, repository) };
        if (branch !== null) source.branch = branch;
        if (depth !== null) source.depth = depth;
        if (filter !== null) source.filter = filter;
        const { defaultBranch, tree } = await gitMirrors.clone(repository, source, hooks);
        await recordClone(database, work.itemId, { defaultBranch, facts: tree });
      }),

    /** Removes all that there is of a repository whose item is gone for good. */
    async removeRepository({ itemId }: { itemId: string }): Promise<void> {
      using _heartbeat = keepAlive();
      const repository = await findRepository(database, itemId);
      if (repository === undefined) return;
      if (repository.removedAt === null) throw notOrdered();
      await gitMirrors.remove(repository);
      await forgetRepository(database, itemId);
    },
  };
}
