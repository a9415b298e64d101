import type { Transaction } from 'sequelize';
import { deleteInBatches } from '../batches.ts';
import type { Database } from '../database.ts';
import { execute } from '../sql.ts';

/** In the transaction that removes their items for good: what there is of these apps is swept. */
export async function removeAppsOf(tx: Transaction, itemIds: readonly string[]): Promise<void> {
  if (itemIds.length === 0) return;
  await execute(tx, 'UPDATE apps SET live = NULL, removed_at = ? WHERE item_id IN (?) AND live = 1', [
    new Date(),
    itemIds,
  ]);
}

/** Returns how many there were. */
export function forgetRemovedApps(database: Pick<Database, 'pool'>): Promise<number> {
  return deleteInBatches(database, 'DELETE FROM apps WHERE removed_at <= ? LIMIT ?', [new Date()]);
}
