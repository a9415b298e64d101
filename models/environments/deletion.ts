import { DomainError } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { requireNotBuilding } from './builds/beginBuild.ts';
import { lockEnvironment } from './environment.ts';
import { markAll } from './letGo.ts';
import { type Uses, usesOf } from './used.ts';

/**
 * Deletes an environment for its users. Computers keep what they have. Throws 403, 404, 409 `ENVIRONMENT_BUILDING`, and
 * `ENVIRONMENT_IN_USE` unless it is forced.
 */
export async function deleteEnvironment(
  { database }: { database: Database },
  request: { spaceId: string; environmentId: string; isForced: boolean; actor: Actor },
): Promise<void> {
  const { spaceId, environmentId: id, isForced, actor } = request;
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    await lockEnvironment(tx, spaceId, id);
    await requireNotBuilding(tx, id);
    if (!isForced) requireUnused(await usesOf(tx, { id, spaceId }));
    await execute(tx, 'UPDATE environments SET deleted_at = ? WHERE id = ?', [new Date(), id]);
    await markAll(tx, id);
    await appendAudit(tx, spaceId, actor, 'environment.deleted', id);
  });
}

function requireUnused({ computers, environments, ofOthers }: Uses): void {
  const uses = [
    ...(computers.length > 0 ? [`Computers have its system: ${listed(computers)}.`] : []),
    ...(environments.length > 0 ? [`Environments have it as their base: ${listed(environments)}.`] : []),
    ...(ofOthers > 0 ? [`Other spaces use it ${ofOthers === 1 ? 'once' : `${ofOthers} times`}.`] : []),
  ];
  if (uses.length === 0) return;
  const forced = 'With force=true it is deleted, and computers keep their system.';
  throw new DomainError('conflict', 'ENVIRONMENT_IN_USE', `The environment is in use. ${uses.join(' ')} ${forced}`);
}

const mostListed = 10;

function listed(names: readonly string[]): string {
  const more = names.length > mostListed ? [`${names.length - mostListed} more`] : [];
  return [...names.slice(0, mostListed), ...more].join(', ');
}
