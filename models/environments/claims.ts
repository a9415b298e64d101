import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { appendAudit, operator } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { lockAnyComputer } from '../computers/computers.ts';
import { loosen } from '../computers/saves.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { shareEnvironment } from './sharing.ts';

// What other spaces have of the environments that a space shared with them.

/** SQL: something of another space has the system of the version `v`, or will have it. */
const isVersionUsed = `EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_environment)
    WHERE c.environment_version_id = v.id AND c.space_id <> v.space_id AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_restores)
    WHERE c.restores_id = v.id AND c.space_id <> v.space_id AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM home_saves h FORCE INDEX (home_saves_environment)
    JOIN computer_snapshots n FORCE INDEX (computer_snapshots_making) ON n.save_id = h.id
    WHERE h.environment_version_id = v.id AND h.space_id <> v.space_id)`;

/** SQL: something of another space than this one has one of these saves. */
const areSavesUsed = `EXISTS (SELECT 1 FROM computers c FORCE INDEX (computers_head)
    WHERE c.home_save_id IN (:ids) AND c.space_id <> :spaceId AND c.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM computer_snapshots n FORCE INDEX (computer_snapshots_making)
    WHERE n.save_id IN (:ids) AND n.space_id <> :spaceId)
  OR EXISTS (SELECT 1 FROM environment_versions v FORCE INDEX (environment_versions_save)
    WHERE v.save_id IN (:ids) AND v.space_id <> :spaceId)`;

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
  const versions = await select<{ isUsed: number }>(tx, ofVersions, [spaceId]);
  if (versions.some(({ isUsed }) => isUsed === 1)) throw stillShared();
  const ofSpace = 'SELECT id FROM home_saves WHERE space_id = ? AND is_shared = 1';
  let saves = await select<{ id: string }>(tx, ofSpace, [spaceId]);
  // Saves of other spaces that follow them count only if something has one. Others are collected in a while.
  while (saves.length > 0) {
    const ids = saves.map(({ id }) => id);
    const places = ids.map(() => '?').join(', ');
    const used = areSavesUsed.replaceAll(':ids', places).replaceAll(':spaceId', '?');
    const [row] = await select<{ isUsed: number }>(
      tx,
      `SELECT (${used}) AS is_used`,
      Array(3)
        .fill([...ids, spaceId])
        .flat(),
    );
    if (row?.isUsed === 1) throw stillShared();
    await forgetLayersOf(tx, ids, spaceId);
    const after = 'SELECT id FROM home_saves FORCE INDEX (home_saves_parent) WHERE parent_id IN (?) AND space_id <> ?';
    saves = await select<{ id: string }>(tx, after, [ids, spaceId]);
  }
}

/** What other spaces have built on these saves for later builds: none will begin with them again. */
async function forgetLayersOf(tx: Transaction, saveIds: readonly string[], spaceId: string): Promise<void> {
  const of = 'FROM environment_layers WHERE save_id IN (?) AND space_id <> ?';
  const layers = await select<{ saveId: string }>(tx, `SELECT save_id ${of}`, [saveIds, spaceId]);
  if (layers.length === 0) return;
  await execute(tx, `DELETE ${of}`, [saveIds, spaceId]);
  await loosen(
    tx,
    layers.map(({ saveId }) => saveId),
  );
}

function stillShared(): DomainError {
  return new DomainError(
    'conflict',
    'ENVIRONMENTS_SHARED',
    'Computers of other spaces have the system of an environment of this space. They must get another one first.',
  );
}

/**
 * Ends the sharing of an environment, which may be deleted, and takes it from the computers of other spaces that were
 * never started: they have nothing in it, and become computers without an environment. Returns how many. Throws 404.
 */
export async function takeBack(database: Database, id: string): Promise<{ name: string; computers: number }> {
  const sql = 'SELECT name, deleted_at FROM environments WHERE id = ?';
  const [found] = await select<{ name: string; deletedAt: Date | null }>(database.pool, sql, [id]);
  if (found === undefined) throw notFound('environment');
  if (found.deletedAt === null) await shareEnvironment(database, id, false);
  const unstarted = `SELECT c.id, c.space_id FROM environment_versions v
    JOIN computers c FORCE INDEX (computers_environment) ON c.environment_version_id = v.id AND c.space_id <> v.space_id
    WHERE v.environment_id = ? AND c.generation = 0 AND c.deleted_at IS NULL ORDER BY c.id`;
  const rows = await select<{ id: string; spaceId: string }>(database.pool, unstarted, [id]);
  let computers = 0;
  for (const row of rows) if (await takeFrom(database, row, id)) computers += 1;
  return { name: found.name, computers };
}

async function takeFrom(
  database: Database,
  { id, spaceId }: { id: string; spaceId: string },
  environmentId: string,
): Promise<boolean> {
  try {
    return await transaction(database, async (tx) => {
      await lockLivingSpace(tx, spaceId);
      const computer = await lockAnyComputer(tx, id);
      // It may have been started, deleted or given another system meanwhile.
      const of = 'SELECT save_id FROM environment_versions WHERE id = ? AND environment_id = ?';
      const [version] = await select<{ saveId: string | null }>(tx, of, [
        computer?.environmentVersionId,
        environmentId,
      ]);
      if (computer === undefined || computer.generation > 0 || computer.hostId !== null || version === undefined)
        return false;
      if (computer.homeSaveId === null || computer.homeSaveId !== version.saveId) return false;
      const none = {
        homeSaveId: null,
        homeSavedAt: null,
        base: null,
        environmentVersionId: null,
        servesEnvironmentId: null,
      };
      await execute(tx, 'UPDATE computers SET ? WHERE id = ?', [none, id]);
      await loosen(tx, [version.saveId]);
      await appendAudit(tx, spaceId, operator, 'computer.changed', id);
      return true;
    });
  } catch (error) {
    // Its space was deleted meanwhile.
    if (error instanceof DomainError && error.kind === 'notFound') return false;
    throw error;
  }
}
