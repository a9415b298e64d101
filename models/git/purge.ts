import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** Marks repositories as removed, in the transaction that deletes their items. Their workflows remove the rest. */
export async function removeRepositories(tx: Transaction, itemIds: readonly string[]): Promise<void> {
  if (itemIds.length === 0) return;
  await execute(tx, 'UPDATE git_repositories SET removed_at = COALESCE(removed_at, ?) WHERE item_id IN (?)', [
    new Date(),
    itemIds,
  ]);
}

/** Repositories whose items are gone for good, by the items' ids. */
export const removedRepositories = waitingIn<Waiting & { spaceId: string }>({
  table: 'git_repositories',
  id: 'item_id',
  columns: ['space_id'],
  where: 'removed_at IS NOT NULL',
  time: 'removed_at',
});

/** Gives back the quota of a removed repository. The sweep removes its bundles from the store. */
export const forgetBundles = (database: Database, itemId: string): Promise<void> =>
  forget(database, itemId, ['git_bundles', 'git_orders']);

/** Deletes the rows of a removed repository, when its files are removed. */
export const forgetRepository = (database: Database, itemId: string): Promise<void> =>
  forget(database, itemId, ['git_bundles', 'git_orders', 'git_drafts', 'git_repositories']);

async function forget(database: Database, itemId: string, tables: readonly string[]): Promise<void> {
  await transaction(database, async (tx) => {
    const [row] = await select<{ removedAt: Date | null }>(
      tx,
      'SELECT removed_at FROM git_repositories WHERE item_id = ? FOR UPDATE',
      [itemId],
    );
    if (row === undefined || row.removedAt === null) return;
    const sql = 'SELECT object_key FROM git_bundles WHERE item_id = ? AND object_key IS NOT NULL';
    const bundles = await select<{ objectKey: string }>(tx, sql, [itemId]);
    await driveModels(tx).DriveObject.doom(
      bundles.map(({ objectKey }) => objectKey),
      tx,
    );
    for (const table of tables) {
      await execute(tx, `DELETE FROM ${table} WHERE item_id = ?`, [itemId]);
    }
  });
}

/** Marks the repositories of a deleted space as removed. Returns the remaining ones: their workflows remove them. */
export async function removeRepositoriesOf(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
): Promise<{ id: string; spaceId: string }[]> {
  await execute(pool, 'UPDATE git_repositories SET removed_at = ? WHERE space_id = ? AND removed_at IS NULL', [
    new Date(),
    spaceId,
  ]);
  const sql = 'SELECT item_id AS id, space_id FROM git_repositories WHERE space_id = ? LIMIT 200';
  return select<{ id: string; spaceId: string }>(pool, sql, [spaceId]);
}
