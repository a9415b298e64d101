import { removeRepositoriesOf } from '../../models/git/purge.ts';
import { requireOrder } from '../order.ts';
import type { GitDeps } from './deps.ts';

/** What becomes of the repositories of a deleted space. */
export function createRepositoryPurges({ database, workflows }: GitDeps) {
  return {
    /**
     * Has the repositories of a deleted space removed, and returns how many there still are: 0 means that their
     * operations have ended and that nothing is cloned any more.
     */
    async purgeRepositoriesOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await removeRepositoriesOf(database, scope.spaceId);
      for (const repository of left) await workflows.interruptRepository(repository);
      return left.length;
    },
  };
}
