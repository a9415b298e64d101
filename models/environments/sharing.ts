import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { appendAudit, operator } from '../audit/audit.ts';
import { chainOf, lockSave } from '../computers/saveRows.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { isUsable, lockVersion, type ReadyVersion, readyVersion } from './version.ts';

/**
 * Lets all spaces use an environment, or no longer. Computers that have it keep its system. Throws 404, 409
 * `ENVIRONMENT_NAME_TAKEN` if another environment of this name is shared.
 */
export async function shareEnvironment(database: Database, id: string, isShared: boolean): Promise<{ name: string }> {
  return transaction(database, async (tx) => {
    const sql = 'SELECT name, space_id, shared_at FROM environments WHERE id = ? AND deleted_at IS NULL FOR UPDATE';
    const [found] = await select<{ name: string; spaceId: string; sharedAt: Date | null }>(tx, sql, [id]);
    if (found === undefined) throw notFound('environment');
    const { name, spaceId } = found;
    if ((found.sharedAt !== null) === isShared) return { name };
    if (isShared) await requireUnsharedName(tx, name, id);
    await execute(tx, 'UPDATE environments SET shared_at = ? WHERE id = ?', [isShared ? new Date() : null, id]);
    await appendAudit(tx, spaceId, operator, isShared ? 'environment.shared' : 'environment.unshared', id);
    return { name };
  });
}

/** Throws 409 `ENVIRONMENT_NAME_TAKEN` if another environment of this name is shared. */
export async function requireUnsharedName(tx: Transaction, name: string, ownId: string): Promise<void> {
  const sql = `SELECT id FROM environments
    WHERE shared_at IS NOT NULL AND deleted_at IS NULL AND name = ? AND id <> ? FOR UPDATE`;
  if ((await select(tx, sql, [name, ownId])).length === 0) return;
  throw new DomainError('conflict', 'ENVIRONMENT_NAME_TAKEN', `An environment named ${name} is shared already.`);
}

/** An environment, as the operator sees it. */
export interface ListedEnvironment {
  id: string;
  name: string;
  spaceId: string;
  spaceName: string;
  sharedAt: Date | null;
  /** The number of the newest version that is ready. */
  readyVersion: number | null;
}

/** The environments of all spaces, in the order in which they were made. */
export function environmentsOfAll(
  { pool }: Pick<Database, 'pool'>,
  { limit, after = '' }: { limit: number; after?: string | undefined },
): Promise<ListedEnvironment[]> {
  const sql = `SELECT e.id, e.name, e.space_id, s.name AS space_name, e.shared_at,
      (SELECT MAX(v.number) FROM environment_versions v
        WHERE v.environment_id = e.id AND v.status = 'ready' AND v.let_go_at IS NULL) AS ready_version
    FROM environments e JOIN spaces s ON s.id = e.space_id AND s.deleted_at IS NULL
    WHERE e.id > ? AND e.deleted_at IS NULL ORDER BY e.id LIMIT ?`;
  return select<ListedEnvironment>(pool, sql, [after, limit]);
}

type Wanted = Parameters<typeof readyVersion>[1];

/**
 * The version that a computer or a build begins with. The space is locked. From another space, the version is locked, and
 * its saves are marked as shared: hosts open them with the key of their own space. Throws as `readyVersion`.
 */
export async function takeVersion(tx: Transaction, wanted: Wanted): Promise<ReadyVersion> {
  const seen = await readyVersion(tx, wanted);
  if (seen.spaceId === wanted.spaceId) return seen;
  // Whoever ends the sharing, or removes the version, goes before this or after it.
  const usable = `SELECT e.id FROM environments e WHERE e.id = ? AND ${isUsable} FOR UPDATE`;
  if ((await select(tx, usable, [wanted.environmentId, wanted.spaceId])).length === 0) throw notFound('environment');
  await lockVersion(tx, seen.id);
  const version = await readyVersion(tx, { ...wanted, number: seen.number });
  const save = await lockSave(tx, version.saveId);
  const saves = save === undefined ? [] : await chainOf(tx, save);
  const foreign = saves.filter(({ spaceId }) => spaceId !== wanted.spaceId).map(({ id }) => id);
  if (foreign.length > 0) await execute(tx, 'UPDATE home_saves SET is_shared = 1 WHERE id IN (?)', [foreign]);
  return version;
}

/** SQL: something of another space refers to the save `s`. */
const isSaveUsed = `EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_head)
    WHERE c.home_save_id = s.id AND c.space_id <> s.space_id AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM computer_snapshots n FORCE INDEX (computer_snapshots_making)
    WHERE n.save_id = s.id AND n.space_id <> s.space_id)
  OR EXISTS (SELECT 1 FROM environment_versions v FORCE INDEX (environment_versions_save)
    WHERE v.save_id = s.id AND v.space_id <> s.space_id)
  OR EXISTS (SELECT 1 FROM environment_layers l FORCE INDEX (environment_layers_save)
    WHERE l.save_id = s.id AND l.space_id <> s.space_id)
  OR EXISTS (SELECT 1 FROM home_saves h FORCE INDEX (home_saves_parent)
    WHERE h.parent_id = s.id AND h.space_id <> s.space_id)`;

/** SQL: something of another space has the system of the version `v`, or will have it. */
const isVersionUsed = `EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_environment)
    WHERE c.environment_version_id = v.id AND c.space_id <> v.space_id AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_restores)
    WHERE c.restores_id = v.id AND c.space_id <> v.space_id AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM home_saves h FORCE INDEX (home_saves_environment)
    WHERE h.environment_version_id = v.id AND h.space_id <> v.space_id)`;

/**
 * For a space that is deleted now: ends the sharing of its environments. Throws 409 `ENVIRONMENTS_SHARED` if computers of
 * other spaces still need one, since the keys of the space open what they begin with.
 */
export async function endSharing(tx: Transaction, spaceId: string): Promise<void> {
  const shared = 'SELECT id FROM environments WHERE space_id = ? AND shared_at IS NOT NULL FOR UPDATE';
  if ((await select(tx, shared, [spaceId])).length > 0) {
    await execute(tx, 'UPDATE environments SET shared_at = NULL WHERE space_id = ?', [spaceId]);
  }
  const ofVersions = `SELECT (${isVersionUsed}) AS is_used FROM environment_versions v WHERE v.space_id = ?`;
  const ofSaves = `SELECT (${isSaveUsed}) AS is_used FROM home_saves s WHERE s.space_id = ? AND s.is_shared = 1`;
  const rows = [ofVersions, ofSaves].map((sql) => select<{ isUsed: number }>(tx, sql, [spaceId]));
  if (!(await Promise.all(rows)).flat().some(({ isUsed }) => isUsed === 1)) return;
  throw new DomainError(
    'conflict',
    'ENVIRONMENTS_SHARED',
    'Computers of other spaces have the system of an environment of this space. They must get another one first.',
  );
}
