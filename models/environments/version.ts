import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { type Runner, select } from '../database/sql.ts';
import type { EnvironmentStep, Setting } from './steps.ts';

export type VersionStatus = 'building' | 'ready' | 'failed' | 'cancelled';

/** SQL: a space may use the environment `e`, which is its own or is shared. */
export const isUsable = 'e.deleted_at IS NULL AND (e.space_id = ? OR e.shared_at IS NOT NULL)';

/** SQL: a space may use the version `v` of the usable environment `e`. Others get none from before it was shared. */
const isOffered = '(e.space_id = ? OR v.number >= COALESCE(e.shared_from, 0))';

/** A row of `environment_versions`. */
export interface Version extends Setting {
  id: string;
  spaceId: string;
  environmentId: string;
  /** Counts the builds of its environment. */
  number: number;
  status: VersionStatus;
  base: string;
  steps: EnvironmentStep[];
  withoutCache: boolean;
  /** What is built so far. Null before the first step is saved, and of a version that is not ready in the end. */
  saveId: string | null;
  /** The image that it begins with, by its digest. Null before the registry has said it, and with another base. */
  image: string | null;
  /** What that image says and has no meaning here, for people. */
  warnings: string[];
  operationId: string;
  errorCode: string | null;
  /** While it is built: why the computer of the build cannot run yet. */
  waitsFor: string | null;
  createdBy: string;
  /** The API key that asked for the build. Null for a person who was signed in. */
  apiKeyId: string | null;
  createdAt: Date;
  endedAt: Date | null;
  /** The size of what is built so far. */
  homeBytes: number | null;
}

/** A version that computers can begin with. */
export type ReadyVersion = Version & { saveId: string };

const query = `SELECT v.id, v.space_id, v.environment_id, v.number, v.status, v.base, v.steps, v.without_cache, v.save_id,
    v.env, v.user_name, v.workdir, v.operation_id, v.error_code, v.waits_for, v.image, v.warnings,
    v.created_by, v.api_key_id, v.created_at, v.ended_at, s.home_bytes
   FROM environment_versions v LEFT JOIN home_saves s ON s.id = v.save_id`;

function versionOf(row: object): Version {
  const { steps, env, userName, withoutCache, warnings, homeBytes, ...rest } = row as Record<string, unknown> & Version;
  return {
    ...rest,
    steps: JSON.parse(String(steps)) as EnvironmentStep[],
    env: JSON.parse(String(env)) as Record<string, string>,
    user: userName as string | null,
    withoutCache: Boolean(withoutCache),
    warnings: warnings === null ? [] : (JSON.parse(String(warnings)) as string[]),
    homeBytes: homeBytes === null ? null : Number(homeBytes),
  };
}

export async function findVersion(on: Runner, id: string): Promise<Version | undefined> {
  const [row] = await select<object>(on, `${query} WHERE v.id = ?`, [id]);
  return row && versionOf(row);
}

/** Locks a version, so that its build does not go on meanwhile. */
export async function lockVersion(tx: Transaction, id: string): Promise<Version | undefined> {
  await select(tx, 'SELECT id FROM environment_versions WHERE id = ? FOR UPDATE', [id]);
  return findVersion(tx, id);
}

/** A version of an environment of the space. Without a number, the newest. Throws 404. */
export async function getVersion(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, environmentId, number }: { spaceId: string; environmentId: string; number?: number | undefined },
): Promise<Version> {
  const [also, values] = number === undefined ? ['', []] : ['AND v.number = ?', [number]];
  const sql = `${query} JOIN environments e ON e.id = v.environment_id AND e.deleted_at IS NULL
    WHERE v.environment_id = ? AND v.space_id = ? ${also} ORDER BY v.number DESC LIMIT 1`;
  const [row] = await select<object>(pool, sql, [environmentId, spaceId, ...values]);
  if (row === undefined) throw notFound('version');
  return versionOf(row);
}

/** Those that a space may see, newest first. Without those that were let go. */
export function listVersions(
  database: Database,
  { spaceId, environmentId }: { spaceId: string; environmentId: string },
  page: PageRequest,
): Promise<Page<Version>> {
  const sql = `${query} JOIN environments e ON e.id = v.environment_id
    WHERE v.environment_id = ? AND v.let_go_at IS NULL AND ${isOffered}`;
  const values = [environmentId, spaceId];
  return readPage(database, page, { sql, values, by: 'v.id', order: 'desc', read: versionOf });
}

/** The newest version of each of these environments. */
export async function latestVersions(
  { pool }: Pick<Database, 'pool'>,
  environmentIds: readonly string[],
): Promise<Map<string, Version>> {
  if (environmentIds.length === 0) return new Map();
  const newest = `SELECT environment_id, MAX(number) AS number FROM environment_versions WHERE environment_id IN (?)
    GROUP BY environment_id`;
  const sql = `${query} JOIN (${newest}) n
    ON n.environment_id = v.environment_id AND n.number = v.number`;
  const rows = await select<object>(pool, sql, [environmentIds]);
  return new Map(rows.map((row) => [versionOf(row).environmentId, versionOf(row)]));
}

/**
 * The version of an environment that a computer begins with: this one, or the newest that is ready. Throws 404, 409
 * `ENVIRONMENT_NOT_READY`.
 */
export async function readyVersion(
  on: Runner,
  { spaceId, environmentId, number }: { spaceId: string; environmentId: string; number?: number | undefined },
): Promise<ReadyVersion> {
  const usable = `SELECT e.id FROM environments e WHERE e.id = ? AND ${isUsable}`;
  if ((await select(on, usable, [environmentId, spaceId])).length === 0) throw notFound('environment');
  const [also, values] = number === undefined ? ['', []] : ['AND v.number = ?', [number]];
  const sql = `${query} JOIN environments e ON e.id = v.environment_id
    WHERE v.environment_id = ? AND v.status = 'ready' AND v.let_go_at IS NULL AND ${isOffered} ${also}
    ORDER BY v.number DESC LIMIT 1`;
  const [row] = await select<object>(on, sql, [environmentId, spaceId, ...values]);
  if (row !== undefined) return versionOf(row) as ReadyVersion;
  const which = number === undefined ? 'No version of this environment' : `Version ${number} of this environment`;
  throw new DomainError(
    'conflict',
    'ENVIRONMENT_NOT_READY',
    `${which} ${number === undefined ? 'is' : 'is not'} ready.`,
  );
}

/** The computer on which a version is built. Its id follows from that of the version, so there is one. */
export function builderOf({ id, spaceId }: Pick<Version, 'id' | 'spaceId'>): { spaceId: string; computerId: string } {
  return { spaceId, computerId: id.replace(/^evr_/, 'cmp_') };
}
