import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { loosen } from '../computers/saves.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import { lockVersion } from './version.ts';

/** Marks the versions of an environment that are too many: of those that are ready, and of the others. */
export async function markOld(tx: Transaction, environmentId: string, kept: number): Promise<void> {
  const sql = `SELECT id, status FROM environment_versions
    WHERE environment_id = ? AND status <> 'building' AND let_go_at IS NULL ORDER BY number DESC`;
  const rows = await select<{ id: string; status: string }>(tx, sql, [environmentId]);
  const isReady = ({ status }: { status: string }) => status === 'ready';
  const old = [...rows.filter(isReady).slice(kept), ...rows.filter((row) => !isReady(row)).slice(kept)];
  if (old.length === 0) return;
  const ids = old.map(({ id }) => id);
  await execute(tx, 'UPDATE environment_versions SET let_go_at = ? WHERE id IN (?)', [new Date(), ids]);
}

/** Marks all versions of an environment that is deleted. */
export async function markAll(tx: Transaction, environmentId: string): Promise<void> {
  const sql = 'UPDATE environment_versions SET let_go_at = ? WHERE environment_id = ? AND let_go_at IS NULL';
  await execute(tx, sql, [new Date(), environmentId]);
}

export type OldVersion = Waiting & { spaceId: string };

/** Versions that are marked. */
export const oldVersions = waitingIn<OldVersion>({
  table: 'environment_versions',
  columns: ['space_id'],
  where: 'let_go_at IS NOT NULL',
  time: 'let_go_at',
});

/** The computers and saves that were made of a version need what it says of their processes. */
const isNeeded = `EXISTS (SELECT 1 FROM computers c WHERE c.environment_version_id = v.id)
  OR EXISTS (SELECT 1 FROM computers c WHERE c.restores_id = v.id)
  OR EXISTS (SELECT 1 FROM home_saves s WHERE s.environment_version_id = v.id)`;

/**
 * Removes a marked version that nothing needs, and its environment with the last version. Returns whether it did. The
 * purge of a deleted space removes its versions.
 */
export async function letGo(database: Database, { id, spaceId }: { id: string; spaceId: string }): Promise<boolean> {
  return transaction(database, async (tx) => {
    // No computer of the space begins with the version meanwhile.
    if (!(await isLiving(tx, spaceId))) return false;
    const version = await lockVersion(tx, id);
    const sql = `SELECT (${isNeeded}) AS isNeeded FROM environment_versions v WHERE v.id = ? AND v.let_go_at IS NOT NULL`;
    const [row] = await select<{ isNeeded: number }>(tx, sql, [id]);
    if (version === undefined || row?.isNeeded !== 0) return false;
    await execute(tx, 'DELETE FROM environment_steps WHERE version_id = ?', [id]);
    await execute(tx, 'DELETE FROM environment_versions WHERE id = ?', [id]);
    if (version.saveId !== null) await loosen(tx, [version.saveId]);
    const gone = `DELETE FROM environments WHERE id = ? AND deleted_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM environment_versions v WHERE v.environment_id = environments.id)`;
    await execute(tx, gone, [version.environmentId]);
    return true;
  });
}

async function isLiving(tx: Transaction, spaceId: string): Promise<boolean> {
  try {
    await lockLivingSpace(tx, spaceId);
    return true;
  } catch (error) {
    if (error instanceof DomainError) return false;
    throw error;
  }
}

const layersAtOnce = 200;

/** Forgets the results of steps that no build has used since then. Returns how many. */
export async function forgetLayers(database: Database, before: Date, onBatch: () => void): Promise<number> {
  for (let forgotten = 0; ; onBatch()) {
    const found = await transaction(database, async (tx) => {
      const sql = `SELECT space_id, digest, save_id FROM environment_layers WHERE used_at < ?
        ORDER BY used_at LIMIT ${layersAtOnce} FOR UPDATE`;
      const rows = await select<{ spaceId: string; digest: string; saveId: string }>(tx, sql, [before]);
      for (const { spaceId, digest } of rows) {
        await execute(tx, 'DELETE FROM environment_layers WHERE space_id = ? AND digest = ?', [spaceId, digest]);
      }
      await loosen(
        tx,
        rows.map(({ saveId }) => saveId),
      );
      return rows.length;
    });
    forgotten += found;
    if (found < layersAtOnce) return forgotten;
  }
}
