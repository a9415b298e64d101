import type { CloneSource } from '../../integrations/git/types.ts';
import { recordClone } from '../../models/git/cloning.ts';
import { draftsOf } from '../../models/git/drafts.ts';
import { forgetBundles, forgetRepository } from '../../models/git/purge.ts';
import { findRepository } from '../../models/git/repository.ts';
import { keepAlive } from '../keepAlive.ts';
import { removeDraftTree } from './draftActivities.ts';
import { createOrdered, type GitDeps, notOrdered, type RepositoryWork } from './ordered.ts';
import { removeTree } from './places.ts';
import { remoteOf } from './remotes.ts';

/** The activities for mirrors. Each may run twice, and does nothing without an order. */
export function createMirrorActivities(deps: GitDeps) {
  const { database, gitMirrors } = deps;
  const forOrdered = createOrdered(deps);

  return {
    /** Clones a repository. Objects that arrived in an earlier attempt are not sent again. */
    cloneMirror: (work: RepositoryWork): Promise<void> =>
      forOrdered(work, async ({ repository, hooks }) => {
        const { branch, depth, filter } = repository;
        await using remote = remoteOf(deps, repository);
        const source: CloneSource = { ...remote };
        if (branch !== null) source.branch = branch;
        if (depth !== null) source.depth = depth;
        if (filter !== null) source.filter = filter;
        const { defaultBranch, tree } = await gitMirrors.clone(repository, source, hooks);
        await recordClone(database, work.itemId, { defaultBranch, facts: tree });
      }),

    /** Removes a repository whose item is gone for good: its mirror, bundles, trees and rows. */
    async removeRepository({ itemId }: { itemId: string }): Promise<void> {
      using heartbeat = keepAlive();
      const repository = await findRepository(database, itemId);
      if (repository === undefined) return;
      if (repository.removedAt === null) throw notOrdered();
      await gitMirrors.remove(repository, heartbeat.cancelled);
      await forgetBundles(database, itemId);
      const { removedAt: statusAt } = repository;
      for (const draft of await draftsOf(database, itemId)) await removeDraftTree(deps, { ...draft, statusAt });
      await removeTree(deps, repository);
      await forgetRepository(database, itemId);
    },
  };
}
