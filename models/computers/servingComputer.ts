import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Runner, select } from '../database/sql.ts';
import { findUsable } from '../environments/bases.ts';
import { type Computer, computerColumns, computerOf, getComputer } from './computer.ts';
import { insertComputer } from './computers.ts';
import { requestedComputer } from './defaultComputer.ts';
import { requireRoomToServe } from './quotas.ts';
import { systemOf } from './systems.ts';

/** What the choice of a computer needs, which may make one. */
export interface ServingDeps {
  database: Database;
  config: Pick<Config, 'computers'>;
}

/** A computer that a request names, or the environment of one. */
interface Wanted {
  spaceId: string;
  computerId?: string | undefined;
  environmentId?: string | undefined;
  actor: Actor;
}

/**
 * The computer that a request means: the named one, that of an environment, or else the space's default one. Throws as
 * `servingComputer`, and 422 `COMPUTER_AMBIGUOUS` if the request names both.
 */
export async function chosenComputer(deps: ServingDeps, wanted: Wanted): Promise<Computer> {
  const { spaceId, computerId, environmentId, actor } = wanted;
  if (environmentId === undefined) return requestedComputer(deps.database, spaceId, computerId);
  if (computerId === undefined) return servingComputer(deps, { spaceId, environment: environmentId, actor });
  const detail = 'names a computer beside environmentId; name one of the two';
  throw new DomainError('unprocessable', 'COMPUTER_AMBIGUOUS', `The request ${detail}.`, {
    errors: [{ pointer: '/computerId', detail }],
  });
}

/**
 * The computer of a space for requests that name only an environment, by its id or name. There is one for each
 * environment, made when it is first asked for, even if the space has as many computers as it may have. Once that is
 * deleted or has another system, there is another one, if there is room (`requireRoomToServe`). It keeps its version of
 * the environment like every other. Throws 404, 409 `ENVIRONMENT_NOT_READY`, `TOO_MANY_COMPUTERS` or `TOO_MUCH_DISK`.
 */
export async function servingComputer(
  { database, config }: ServingDeps,
  { spaceId, environment, actor }: { spaceId: string; environment: string; actor: Actor },
): Promise<Computer> {
  const { id: environmentId, name } = await usableEnvironment(database.pool, spaceId, environment);
  const known = await findServing(database.pool, { spaceId, environmentId });
  if (known !== undefined) return known;
  const made = await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const there = await findServing(tx, { spaceId, environmentId });
    if (there !== undefined) return there.id;
    await requireRoomToServe(tx, spaceId, config);
    const id = newId('computer');
    const row = { ...(await systemOf(tx, spaceId, { environmentId })), name, servesEnvironmentId: environmentId };
    await insertComputer(tx, { id, spaceId, createdBy: actor.userId, row });
    await appendAudit(tx, spaceId, actor, 'computer.made', id);
    return id;
  });
  return getComputer(database, spaceId, made);
}

/** Whether a computer has the system of an environment, by its id or name, in any version. Throws 404. */
export async function isOfEnvironment(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, computerId, environment }: { spaceId: string; computerId: string; environment: string },
): Promise<boolean> {
  const { id } = await usableEnvironment(pool, spaceId, environment);
  const sql = `SELECT c.id FROM computers c JOIN environment_versions v ON v.id = c.environment_version_id
    WHERE c.id = ? AND c.space_id = ? AND c.deleted_at IS NULL AND v.environment_id = ?`;
  return (await select(pool, sql, [computerId, spaceId, id])).length > 0;
}

async function usableEnvironment(on: Runner, spaceId: string, environment: string) {
  const found = await findUsable(on, spaceId, environment);
  if (found !== undefined) return found;
  const detail = `The space has no environment ${environment}. One that another space shares is named by its id.`;
  throw new DomainError('notFound', 'ENVIRONMENT_UNKNOWN', detail);
}

/** It may have been given another environment since it was made. */
async function findServing(
  on: Runner,
  { spaceId, environmentId }: { spaceId: string; environmentId: string },
): Promise<Computer | undefined> {
  const isOfIt = `EXISTS (SELECT 1 FROM environment_versions v
    WHERE v.id = computers.environment_version_id AND v.environment_id = computers.serves_environment_id)`;
  const sql = `SELECT ${computerColumns} FROM computers
    WHERE serves_environment_id = ? AND space_id = ? AND deleted_at IS NULL AND ${isOfIt} ORDER BY id LIMIT 1`;
  const [row] = await select<object>(on, sql, [environmentId, spaceId]);
  return row && computerOf(row);
}
