import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

/** Removes holds from before `before` that have been settled or released. Their outcome is in the ledger. */
export async function purgeOldHolds(database: Database, before: Date, onBatch: () => void): Promise<number> {
  let removed = 0;
  for (const status of ['settled', 'released']) {
    const statement = 'DELETE FROM billing_holds WHERE status = ? AND created_at < ? LIMIT ?';
    removed += await deleteInBatches(database, statement, [status, before], onBatch);
  }
  return removed;
}
