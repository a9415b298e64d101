import type { Transaction } from 'sequelize';
import { deleteInBatches, removeByIds } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { revokeAccountsOf } from '../databases/connections.ts';
import { driveModels } from '../drive/models.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import { removeDeliveriesOf } from './forgetDeliveries.ts';

/** Removes the apps of these items, in the transaction that deletes the items. A sweep deletes the apps' rows. */
export async function removeAppsOf(tx: Transaction, itemIds: readonly string[]): Promise<void> {
  if (itemIds.length === 0) return;
  const sql = 'SELECT id FROM apps WHERE item_id IN (?) AND live = 1 FOR UPDATE';
  const ids = (await select<{ id: string }>(tx, sql, [itemIds])).map(({ id }) => id);
  if (ids.length === 0) return;
  await execute(tx, 'UPDATE apps SET live = NULL, removed_at = ? WHERE id IN (?)', [new Date(), ids]);
  await revokeAccountsOf(tx, ids);
}

export type RemovedApp = Waiting & { spaceId: string };

export const removedApps = waitingIn<RemovedApp>({
  table: 'apps',
  columns: ['space_id'],
  where: 'removed_at IS NOT NULL',
  time: 'removed_at',
});

const runsAtOnce = 200;

/** Deletes a removed app with its runs. Returns the runs that have not ended and must end first. */
export async function forgetApp(database: Database, { id }: RemovedApp): Promise<{ id: string; spaceId: string }[]> {
  const sql = 'SELECT id, space_id FROM app_runs WHERE app_id = ? ORDER BY id LIMIT ?';
  for (;;) {
    const runs = await select<{ id: string; spaceId: string }>(database.pool, sql, [id, runsAtOnce]);
    const ids = runs.map((run) => run.id);
    if ((await forgetRuns(database, ids)) > 0) continue;
    if (runs.length === 0) {
      await removeDeliveriesOf(database, id);
      for (const table of ['app_schedules', 'app_webhook_secrets', 'app_changes', 'app_versions']) {
        await deleteInBatches(database, `DELETE FROM ${table} WHERE app_id = ? LIMIT ?`, [id]);
      }
      await execute(database.pool, 'DELETE FROM apps WHERE id = ? AND live IS NULL', [id]);
    }
    return runs;
  }
}

/** Deletes those of the runs that have ended, and dooms their logs. Returns their number. */
async function forgetRuns(database: Database, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  return transaction(database, async (tx) => {
    const sql = 'SELECT id FROM app_runs WHERE id IN (?) AND active IS NULL FOR UPDATE';
    const ended = (await select<{ id: string }>(tx, sql, [ids])).map(({ id }) => id);
    if (ended.length === 0) return 0;
    const kept = 'SELECT log_key FROM app_run_attempts WHERE run_id IN (?) AND log_key IS NOT NULL';
    const keys = (await select<{ logKey: string }>(tx, kept, [ended])).map(({ logKey }) => logKey);
    await driveModels(tx).DriveObject.doom(keys, tx);
    await execute(tx, 'DELETE FROM app_run_attempts WHERE run_id IN (?)', [ended]);
    await execute(tx, 'DELETE FROM app_runs WHERE id IN (?)', [ended]);
    return ended.length;
  });
}

/** Deletes runs that ended before a time, with their logs. Returns their number. */
export function forgetOldRuns(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const select = 'SELECT id FROM app_runs WHERE ended_at < ? ORDER BY ended_at, id LIMIT ?';
  const remove = (ids: readonly string[]) => forgetRuns(database, ids);
  return removeByIds(database, { select, values: [before], remove, atOnce: runsAtOnce }, onBatch);
}

/** Runs that have not ended. */
export const activeRuns = waitingIn<Waiting & { spaceId: string }>({
  table: 'app_runs',
  index: 'app_runs_active',
  columns: ['space_id'],
  where: 'active = 1',
  time: 'created_at',
});
