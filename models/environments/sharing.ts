import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { appendAudit, operator } from '../audit/audit.ts';
import { chainOf, lockSave } from '../computers/saveRows.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { isUsable, lockVersion, type ReadyVersion, readyVersion } from './version.ts';

/**
 * Lets all spaces use an environment, from its newest ready version on, or no longer. Computers that have it keep its
 * system. Returns the number of that version, if there is one. Throws 404, 409 `ENVIRONMENT_NAME_TAKEN` if another
 * environment of this name is shared.
 */
export async function shareEnvironment(
  database: Database,
  id: string,
  isShared: boolean,
): Promise<{ name: string; sharedFrom: number | null }> {
  return transaction(database, async (tx) => {
    const sql = `SELECT name, space_id, shared_at, shared_from FROM environments
      WHERE id = ? AND deleted_at IS NULL FOR UPDATE`;
    type Row = { name: string; spaceId: string; sharedAt: Date | null; sharedFrom: number | null };
    const [found] = await select<Row>(tx, sql, [id]);
    if (found === undefined) throw notFound('environment');
    const { name, spaceId } = found;
    if ((found.sharedAt !== null) === isShared) return { name, sharedFrom: found.sharedFrom };
    if (isShared) await requireUnsharedName(tx, name, id);
    const sharedFrom = isShared ? await newestReady(tx, id) : null;
    const row = isShared ? { sharedAt: new Date(), sharedFrom, sharedName: name } : { sharedAt: null };
    await execute(tx, 'UPDATE environments SET ? WHERE id = ?', [row, id]);
    await appendAudit(tx, spaceId, operator, isShared ? 'environment.shared' : 'environment.unshared', id);
    return { name, sharedFrom };
  });
}

async function newestReady(tx: Transaction, id: string): Promise<number | null> {
  const sql = `SELECT MAX(number) AS newest FROM environment_versions
    WHERE environment_id = ? AND status = 'ready' AND let_go_at IS NULL`;
  const [row] = await select<{ newest: number | null }>(tx, sql, [id]);
  return row?.newest ?? null;
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
