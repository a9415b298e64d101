import { DomainError } from '../../base/errors.ts';
import type { ComputerRef, WokenBy } from '../../integrations/computers/liveComputers.ts';
import type { GitOrder } from '../../models/git/orders.ts';
import { operationModels } from '../../models/operations/operation.ts';
import type { GitDeps } from './deps.ts';
import { notOrdered } from './failure.ts';

/** A computer that was never used has no files yet: it is woken once for that. */
export async function reach(deps: GitDeps, tree: ComputerRef, order: GitOrder): Promise<void> {
  try {
    await deps.liveComputers.work(tree);
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'COMPUTER_NOT_RUNNING') throw error;
    await deps.liveComputers.awake(tree, await askerOf(deps, order));
  }
}

/** Who has asked for what an order does. */
export async function askerOf({ database }: Pick<GitDeps, 'database'>, { id }: GitOrder): Promise<WokenBy> {
  const operation = await operationModels(database).Operation.findByPk(id);
  if (operation === null) throw notOrdered();
  return { userId: operation.userId, credentialId: null, address: null };
}
