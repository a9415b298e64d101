import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, type Runner, select } from '../database/sql.ts';
import { requireKnownBase } from './bases.ts';
import { beginBuild, requireNotBuilding } from './builds/beginBuild.ts';
import { copiedFiles } from './copiedFiles.ts';
import type { Definition } from './definition/definition.ts';
import { markAll } from './letGo.ts';
import type { EnvironmentStep } from './steps.ts';

/** A row of `environments`. */
export interface Environment {
  id: string;
  spaceId: string;
  name: string;
  /** `debian`, `agents`, or the id of an environment. */
  base: string;
  steps: EnvironmentStep[];
  warnings: string[];
  createdBy: string;
  createdAt: Date;
  /** The number of the newest version that is ready. */
  readyVersion: number | null;
}

export type EnvironmentDeps = { database: Database; config: Pick<Config, 'computers' | 'environments'> };
export type EnvironmentActor = Actor & { userId: string };

const query = `SELECT e.id, e.space_id, e.name, e.base, e.steps, e.warnings, e.created_by, e.created_at,
    (SELECT MAX(v.number) FROM environment_versions v
      WHERE v.environment_id = e.id AND v.status = 'ready' AND v.let_go_at IS NULL) AS ready_version
   FROM environments e`;

function environmentOf(row: object): Environment {
  const { steps, warnings, ...rest } = row as Environment & { steps: unknown; warnings: unknown };
  return { ...rest, steps: JSON.parse(String(steps)), warnings: JSON.parse(String(warnings)) };
}

/** Oldest first. */
export function listEnvironments(database: Database, spaceId: string, page: PageRequest): Promise<Page<Environment>> {
  const sql = `${query} WHERE e.space_id = ? AND e.deleted_at IS NULL`;
  return readPage(database, page, { sql, values: [spaceId], by: 'e.id', order: 'asc', read: environmentOf });
}

/** Throws 404. */
export async function getEnvironment(on: Runner, spaceId: string, id: string): Promise<Environment> {
  const sql = `${query} WHERE e.id = ? AND e.space_id = ? AND e.deleted_at IS NULL`;
  const [row] = await select<object>(on, sql, [id, spaceId]);
  if (row === undefined) throw notFound('environment');
  return environmentOf(row);
}

/**
 * Makes an environment, and orders the build of its first version. The same id again is the same environment. Throws
 * 404, 409 `ENVIRONMENT_NAME_TAKEN` or `TOO_MANY_ENVIRONMENTS`, and as `beginBuild`.
 */
export async function createEnvironment(
  deps: EnvironmentDeps,
  request: {
    id: string;
    versionId: string;
    spaceId: string;
    name: string;
    definition: Definition;
    actor: EnvironmentActor;
  },
): Promise<Environment> {
  const { database, config } = deps;
  const { id, versionId, spaceId, name, definition, actor } = request;
  const files = await copiedFiles(database, spaceId, definition.steps);
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const sql = 'SELECT id, name FROM environments WHERE space_id = ? AND deleted_at IS NULL';
    const there = await select<{ id: string; name: string }>(tx, sql, [spaceId]);
    if (there.some((environment) => environment.id === id)) return;
    requireFreeName(there, name);
    const { perSpace } = config.environments;
    if (there.length >= perSpace) {
      const used = there.length;
      const detail = `A space has at most ${perSpace} environments, and this one has ${used}. Delete one first.`;
      throw new DomainError('conflict', 'TOO_MANY_ENVIRONMENTS', detail, { quota: { limit: perSpace, used } });
    }
    const base = await requireKnownBase(tx, spaceId, definition.base);
    const { steps, warnings } = definition;
    const row = { id, spaceId, name, base, steps, warnings, createdBy: actor.userId, createdAt: new Date() };
    await insert(tx, 'environments', row);
    await beginBuild(deps, tx, { versionId, environment: { id, spaceId, base, steps }, files, actor });
    await appendAudit(tx, spaceId, actor, 'environment.made', id);
  });
  return getEnvironment(database.pool, spaceId, id);
}

/** Changes the name at once, and the definition for the next build. Throws as `createEnvironment`. */
export async function updateEnvironment(
  { database }: EnvironmentDeps,
  request: {
    spaceId: string;
    environmentId: string;
    name?: string | undefined;
    definition?: Definition | undefined;
    actor: Actor;
  },
): Promise<Environment> {
  const { spaceId, environmentId: id, name, definition, actor } = request;
  // A file that is missing is better told now than at the next build.
  if (definition !== undefined) await copiedFiles(database, spaceId, definition.steps);
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    await lockEnvironment(tx, spaceId, id);
    const row: Record<string, unknown> = {};
    if (name !== undefined) {
      const sql = 'SELECT id, name FROM environments WHERE space_id = ? AND deleted_at IS NULL AND id <> ?';
      requireFreeName(await select<{ name: string }>(tx, sql, [spaceId, id]), name);
      row.name = name;
    }
    if (definition !== undefined) {
      const { steps, warnings } = definition;
      Object.assign(row, { base: await requireKnownBase(tx, spaceId, definition.base, id), steps, warnings });
    }
    if (Object.keys(row).length > 0) await execute(tx, 'UPDATE environments SET ? WHERE id = ?', [row, id]);
    await appendAudit(tx, spaceId, actor, 'environment.changed', id);
  });
  return getEnvironment(database.pool, spaceId, id);
}

/** Orders a build of the present definition. A known version is that build. Throws as `beginBuild`. */
export async function buildAgain(
  deps: EnvironmentDeps,
  request: {
    spaceId: string;
    environmentId: string;
    versionId: string;
    withoutCache: boolean;
    actor: EnvironmentActor;
  },
): Promise<Environment> {
  const { database } = deps;
  const { spaceId, environmentId, versionId, withoutCache, actor } = request;
  const { steps: seen } = await getEnvironment(database.pool, spaceId, environmentId);
  const files = await copiedFiles(database, spaceId, seen);
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    await lockEnvironment(tx, spaceId, environmentId);
    const environment = await getEnvironment(tx, spaceId, environmentId);
    if (!(await beginBuild(deps, tx, { versionId, environment, files, withoutCache, actor }))) return;
    await appendAudit(tx, spaceId, actor, 'environment.built', environmentId);
  });
  return getEnvironment(database.pool, spaceId, environmentId);
}

/** Deletes it for its users. Computers keep what they have. Throws 404, 409 `ENVIRONMENT_BUILDING`. */
export async function deleteEnvironment(
  { database }: Pick<EnvironmentDeps, 'database'>,
  { spaceId, environmentId: id, actor }: { spaceId: string; environmentId: string; actor: Actor },
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    await lockEnvironment(tx, spaceId, id);
    await requireNotBuilding(tx, id);
    await execute(tx, 'UPDATE environments SET deleted_at = ? WHERE id = ?', [new Date(), id]);
    await markAll(tx, id);
    await appendAudit(tx, spaceId, actor, 'environment.deleted', id);
  });
}

async function lockEnvironment(tx: Transaction, spaceId: string, id: string): Promise<void> {
  const sql = 'SELECT id FROM environments WHERE id = ? AND space_id = ? AND deleted_at IS NULL FOR UPDATE';
  if ((await select(tx, sql, [id, spaceId])).length === 0) throw notFound('environment');
}

function requireFreeName(others: readonly { name: string }[], name: string): void {
  if (!['debian', 'agents'].includes(name) && !others.some((other) => other.name === name)) return;
  throw new DomainError(
    'conflict',
    'ENVIRONMENT_NAME_TAKEN',
    `There is an environment or a base named ${name} already.`,
  );
}
