import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

/** Removes settled or released holds from before `before`. The ledger has their outcome. */
export async function purgeOldHolds(database: Database, before: Date, onBatch: () => void): Promise<number> {
  let removed = 0;
  for (const status of ['settled', 'released']) {
    const statement = 'DELETE FROM billing_holds WHERE status = ? AND created_at < ? LIMIT ?';
    removed += await deleteInBatches(database, statement, [status, before], onBatch);
  }
  return removed;
}
