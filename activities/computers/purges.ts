import { deleteComputersOf } from '../../models/computers/purge.ts';
import { requireOrder } from '../order.ts';
import type { ComputerDeps } from './deps.ts';

/** What becomes of the computers of a deleted space. */
export function createComputerPurges({ database, workflows }: ComputerDeps) {
  return {
    /** Has the computers of a deleted space removed, and returns how many there still are. */
    async purgeComputersOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await deleteComputersOf(database, scope.spaceId);
      for (const computer of left) await workflows.interruptComputer(computer);
      return left.length;
    },
  };
}
