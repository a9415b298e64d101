import { isCalledOff } from '../../models/git/orders.ts';
import {
  endRepositoryStep,
  nextRepositoryStep,
  type RepositoryStep,
  type RepositoryStepEnd,
} from '../../models/git/steps.ts';
import type { GitDeps } from './deps.ts';

/** What a repository's workflow asks of the database. */
export function createRepositorySteps({ database }: GitDeps) {
  return {
    nextRepositoryStep: ({ itemId }: { itemId: string }): Promise<RepositoryStep> =>
      nextRepositoryStep(database, itemId),
    endRepositoryStep: async (end: RepositoryStepEnd): Promise<void> => void (await endRepositoryStep(database, end)),
    isOrderCalledOff: ({ orderId }: { orderId: string }): Promise<boolean> => isCalledOff(database, orderId),
  };
}
