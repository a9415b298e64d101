import { deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** A hold or a grant that waits for its end. */
export type StaleCredits = Waiting & { spaceId: string };

export async function openHoldsOf(database: Database, turnId: string): Promise<{ id: string; spaceId: string }[]> {
  const sql = "SELECT id, space_id FROM billing_holds WHERE turn_id = ? AND status = 'open'";
  return select<{ id: string; spaceId: string }>(database.pool, sql, [turnId]);
}

/** Open holds of ended turns, and of messages that never became a turn. */
export const staleHolds = waitingIn<StaleCredits>({
  table: 'billing_holds',
  columns: ['space_id'],
  where: `status = 'open' AND turn_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = billing_holds.turn_id AND t.terminal = 0)`,
  time: 'created_at',
});

/** Open holds of calls that belong to no turn. The time alone says whether such a call can still run. */
export const holdsWithoutTurn = waitingIn<StaleCredits>({
  table: 'billing_holds',
  columns: ['space_id'],
  where: "status = 'open' AND turn_id IS NULL",
  time: 'created_at',
});

/** Expired grants with credits left. */
export const expiredGrants = waitingIn<StaleCredits>({
  table: 'billing_grants',
  columns: ['space_id'],
  where: 'remaining > 0 AND expires_at IS NOT NULL',
  time: 'expires_at',
});

/** Removes settled or released holds from before `before`. The ledger has their outcome. */
export async function purgeOldHolds(database: Database, before: Date, onBatch: () => void): Promise<number> {
  let removed = 0;
  for (const status of ['settled', 'released']) {
    const statement = 'DELETE FROM billing_holds WHERE status = ? AND created_at < ? LIMIT ?';
    removed += await deleteInBatches(database, statement, [status, before], onBatch);
  }
  return removed;
}
