import { idBound } from '../../base/ids.ts';
import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

/** Removes operations that were begun before `before` and have ended. */
export function purgeOldOperations(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const statement = "DELETE FROM operations WHERE id < ? AND status <> 'running' ORDER BY id LIMIT ?";
  return deleteInBatches(database, statement, [idBound('operation', before)], onBatch);
}
