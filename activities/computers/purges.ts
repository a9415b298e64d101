import { deleteComputersOf } from '../../models/computers/purge.ts';
import { requireOrder } from '../order.ts';
import type { ComputerDeps } from './deps.ts';

export function createComputerPurges({ database, workflows }: ComputerDeps) {
  return {
    /** Orders the removal of a deleted space's computers. Returns how many still exist. */
    async purgeComputersOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await deleteComputersOf(database, scope.spaceId);
      for (const computer of left) await workflows.interruptComputer(computer);
      return left.length;
    },
  };
}
