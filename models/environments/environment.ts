import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, type Runner, select } from '../database/sql.ts';
import { requireKnownBase } from './bases.ts';
import { beginBuild } from './builds/beginBuild.ts';
import { copiedFiles, copiesOnly } from './copiedFiles.ts';
import type { Definition } from './definition/definition.ts';
import { requireUnsharedName } from './sharing.ts';
import type { EnvironmentStep } from './steps.ts';
import { isUsable } from './version.ts';

/** A row of `environments`. */
export interface Environment {
  id: string;
  spaceId: string;
  name: string;
  /** `debian`, `agents`, the id of an environment, or an image of a registry. */
  base: string;
  steps: EnvironmentStep[];
  warnings: string[];
  createdBy: string;
  createdAt: Date;
  /** The number of the newest version that is ready. */
  readyVersion: number | null;
  /** Whether all spaces may use it. */
  isShared: boolean;
}

export type EnvironmentDeps = { database: Database; config: Pick<Config, 'computers' | 'environments'> };
export type EnvironmentActor = Actor & { userId: string };

const query = `SELECT e.id, e.space_id, e.name, e.base, e.steps, e.warnings, e.created_by, e.created_at,
    e.shared_at IS NOT NULL AS is_shared, (SELECT MAX(v.number) FROM environment_versions v
      WHERE v.environment_id = e.id AND v.status = 'ready' AND v.let_go_at IS NULL) AS ready_version
   FROM environments e`;

type Row = Omit<Environment, 'steps' | 'warnings' | 'isShared'> & { steps: string; warnings: string; isShared: number };

function environmentOf(row: object): Environment {
  const { steps, warnings, isShared, ...rest } = row as Row;
  const lists = { steps: JSON.parse(steps) as EnvironmentStep[], warnings: JSON.parse(warnings) as string[] };
  return { ...rest, ...lists, isShared: isShared === 1 };
}

/** Those that a space may use: its own and those that are shared. Oldest first. */
export function listEnvironments(database: Database, spaceId: string, page: PageRequest): Promise<Page<Environment>> {
  const usable = `SELECT id FROM environments WHERE space_id = ? AND deleted_at IS NULL
    UNION SELECT id FROM environments WHERE shared_at IS NOT NULL AND deleted_at IS NULL`;
  const sql = `${query} JOIN (${usable}) u ON u.id = e.id WHERE e.deleted_at IS NULL`;
  return readPage(database, page, { sql, values: [spaceId], by: 'e.id', order: 'asc', read: environmentOf });
}

/** An environment that the space may use. Throws 404. */
export async function getEnvironment(on: Runner, spaceId: string, id: string): Promise<Environment> {
  const sql = `${query} WHERE e.id = ? AND ${isUsable}`;
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
    const base = await requireKnownBase(tx, config, spaceId, definition.base);
    const { steps, warnings } = definition;
    const row = { id, spaceId, name, base, steps, warnings, createdBy: actor.userId, createdAt: new Date() };
    await insert(tx, 'environments', row);
    await beginBuild(deps, tx, { versionId, environment: { id, spaceId, base, steps }, files, actor });
    await appendAudit(tx, spaceId, actor, 'environment.made', id);
  });
  return getEnvironment(database.pool, spaceId, id);
}

/**
 * Changes the name at once, and the definition for the next build. Throws as `createEnvironment`, and 403
 * `ENVIRONMENT_OF_OTHERS` for a shared one of another space.
 */
export async function updateEnvironment(
  { database, config }: EnvironmentDeps,
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
    const { isShared } = await lockEnvironment(tx, spaceId, id);
    const row: Record<string, unknown> = {};
    if (name !== undefined) {
      const sql = 'SELECT id, name FROM environments WHERE space_id = ? AND deleted_at IS NULL AND id <> ?';
      requireFreeName(await select<{ name: string }>(tx, sql, [spaceId, id]), name);
      if (isShared) await requireUnsharedName(tx, name, id);
      Object.assign(row, { name, ...(isShared && { sharedName: name }) });
    }
    if (definition !== undefined) {
      const { steps, warnings } = definition;
      Object.assign(row, { base: await requireKnownBase(tx, config, spaceId, definition.base, id), steps, warnings });
    }
    if (Object.keys(row).length > 0) await execute(tx, 'UPDATE environments SET ? WHERE id = ?', [row, id]);
    await appendAudit(tx, spaceId, actor, 'environment.changed', id);
  });
  return getEnvironment(database.pool, spaceId, id);
}

/**
 * Orders a build of the present definition. A known version is that build. Throws as `beginBuild` and
 * `updateEnvironment`, and 409 `ENVIRONMENT_CHANGING`.
 */
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
  for (let tries = 1, isBegun = false; !isBegun; tries++) {
    const { steps: seen } = await getEnvironment(database.pool, spaceId, environmentId);
    const files = await copiedFiles(database, spaceId, seen);
    isBegun = await transaction(database, async (tx) => {
      await lockLivingSpace(tx, spaceId);
      await lockEnvironment(tx, spaceId, environmentId);
      const environment = await getEnvironment(tx, spaceId, environmentId);
      // The files are those of the definition that is built.
      if (!copiesOnly(environment.steps, files)) return false;
      if (await beginBuild(deps, tx, { versionId, environment, files, withoutCache, actor })) {
        await appendAudit(tx, spaceId, actor, 'environment.built', environmentId);
      }
      return true;
    });
    if (!isBegun && tries === mostLists) throw definitionChanges();
  }
  return getEnvironment(database.pool, spaceId, environmentId);
}

/** How often the files of a definition are listed that others change meanwhile. */
const mostLists = 3;

function definitionChanges(): DomainError {
  const detail = 'The definition of the environment is being changed. Try again.';
  return new DomainError('conflict', 'ENVIRONMENT_CHANGING', detail, { retryAfterSeconds: 1 });
}

/** An environment that the space may change. Throws 403, 404. */
export async function lockEnvironment(tx: Transaction, spaceId: string, id: string): Promise<{ isShared: boolean }> {
  const sql = `SELECT e.space_id, e.shared_at FROM environments e WHERE e.id = ? AND ${isUsable} FOR UPDATE`;
  const [found] = await select<{ spaceId: string; sharedAt: Date | null }>(tx, sql, [id, spaceId]);
  if (found === undefined) throw notFound('environment');
  if (found.spaceId === spaceId) return { isShared: found.sharedAt !== null };
  const detail =
    'The environment belongs to another space, which shares it. Make one of your own with it as the base, and change that.';
  throw new DomainError('forbidden', 'ENVIRONMENT_OF_OTHERS', detail);
}

function requireFreeName(others: readonly { name: string }[], name: string): void {
  if (!['debian', 'agents'].includes(name) && !others.some((other) => other.name === name)) return;
  throw new DomainError(
    'conflict',
    'ENVIRONMENT_NAME_TAKEN',
    `There is an environment or a base named ${name} already.`,
  );
}
