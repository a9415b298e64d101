import { deleteInBatches } from './batches.ts';
import type { Database } from './database.ts';
import { idBound } from './ids.ts';

/** Removes operations that were begun before `before` and have ended. */
export function purgeOldOperations(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const statement = "DELETE FROM operations WHERE id < ? AND status <> 'running' ORDER BY id LIMIT ?";
  return deleteInBatches(database, statement, [idBound('operation', before)], onBatch);
}
