import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { appendAudit } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { takeVersion } from '../environments/sharing.ts';
import { findVersion } from '../environments/version.ts';
import { type Computer, getComputer } from './computer.ts';
import { findHost, hasBase, noBase, requireBaseOffered } from './hosts.ts';
import { beginToRestore } from './restoring.ts';
import { loosen } from './saves.ts';
import { change, requireQuietHome } from './starting.ts';
import { systemOf, type WantedSystem } from './systems.ts';
import { type Asked, ask, type ComputerRequest } from './wishes.ts';

/**
 * Asks for a computer to get the system of an environment, and to keep its home. This is a restore: what the computer
 * has becomes a snapshot first, and a computer that runs is stopped, and starts again. Throws 404, 409
 * `ENVIRONMENT_NOT_READY`, `COMPUTER_UNPLACED`, `TOO_MANY_SNAPSHOTS` or `COMPUTER_BUSY`, 422 `DRIVER_NOT_OFFERED`, 503
 * `ENVIRONMENTS_UNAVAILABLE`.
 */
export async function askForSystem(
  deps: { database: Database; config: Pick<Config, 'computers' | 'billing'> },
  request: ComputerRequest & WantedSystem & { operationId?: string },
): Promise<Asked> {
  const { database, config } = deps;
  const { spaceId, environmentId, environmentVersion: number, actor } = request;
  const { driver } = await getComputer(database, spaceId, request.computerId);
  await requireBaseOffered(database, 'debian', config, driver);
  return ask(deps, request, 'restoreComputer', 'computer.restored', async (tx, computer) => {
    const version = await takeVersion(tx, { spaceId, environmentId, number });
    if (computer.wish === 'restore' && computer.restoresId === version.id) return 'waits';
    requireQuietHome(computer);
    if (computer.environmentVersionId === version.id) return 'done';
    if (computer.hostId === null) {
      if (!(await isUnused(tx, computer))) throw unplaced();
      if (computer.homeSaveId !== null) await loosen(tx, [computer.homeSaveId]);
      await change(tx, computer, await systemOf(tx, spaceId, { environmentId, environmentVersion: number }));
      await appendAudit(tx, spaceId, actor, 'computer.changed', computer.id);
      return 'done';
    }
    const host = await findHost(database, computer.hostId);
    if (host !== undefined && !hasBase(host, 'debian')) throw noBase('debian');
    await beginToRestore(deps, tx, computer, version.id);
    return 'waits';
  });
}

/** Whether it has no home of its own yet. What it begins with may be the system of an environment. */
async function isUnused(tx: Transaction, { homeSaveId, environmentVersionId }: Computer): Promise<boolean> {
  if (homeSaveId === null) return true;
  return environmentVersionId !== null && (await findVersion(tx, environmentVersionId))?.saveId === homeSaveId;
}

function unplaced(): DomainError {
  const detail = 'The computer has a home, but is on no host now. Wake it first.';
  return new DomainError('conflict', 'COMPUTER_UNPLACED', detail);
}
