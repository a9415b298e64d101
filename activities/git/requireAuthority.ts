import { gitError } from '../../integrations/git/rules/failures.ts';
import type { GitOrder, GitOrderKind } from '../../models/git/orders.ts';
import type { Repository } from '../../models/git/repository.ts';
import { standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { operationModels } from '../../models/operations/operation.ts';
import type { GitDeps } from './deps.ts';
import { notOrdered } from './failure.ts';

/** What people and agents ask for; the rest is what Atrium does by itself. */
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
 * An order may wait for hours. Throws 403 `GIT_ORDER_FORBIDDEN` where whoever has asked is no editor of the space any
 * more, or the API key was revoked or has expired.
 */
export async function requireAuthority(
  { database, identity }: Pick<GitDeps, 'database' | 'identity'>,
  { spaceId }: Pick<Repository, 'spaceId'>,
  { id, kind, apiKeyId, result }: GitOrder,
): Promise<void> {
  // What is done is brought to its end.
  if (!asked.includes(kind) || result !== null) return;
  const operation = await operationModels(database).Operation.findByPk(id);
  if (operation === null) throw notOrdered();
  const { userId } = operation;
  const { role, keyHolds } = await standingOf(identity, { spaceId, userId, apiKeyId });
  if (role !== undefined && isAtLeast(role, 'editor') && keyHolds) return;
  throw gitError('GIT_ORDER_FORBIDDEN', 'Whoever has asked for this may not do it any more.');
}
