import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** A space that had credits and has few left, with the owners who can buy more. */
export interface LowBalance {
  spaceId: string;
  name: string;
  availableMicro: number;
  ownerEmails: string[];
}

/** Spaces that became low and were not reported yet. Once a space has enough again, it may be reported later. */
export async function findLowBalances(database: Database, threshold: number, limit: number): Promise<LowBalance[]> {
  const sql = 'UPDATE billing_balances SET low_since = NULL WHERE low_since IS NOT NULL AND available >= ?';
  await execute(database.pool, sql, [threshold]);
  const low = await select<Omit<LowBalance, 'ownerEmails'>>(
    database.pool,
    `SELECT b.space_id, s.name, b.available AS availableMicro FROM billing_balances b JOIN spaces s ON s.id = b.space_id
      WHERE b.low_since IS NULL AND b.available < ? AND b.granted + b.paid > 0 AND s.deleted_at IS NULL LIMIT ?`,
    [threshold, limit],
  );
  if (low.length === 0) return [];
  const owners = await select<{ spaceId: string; email: string }>(
    database.pool,
    `SELECT m.space_id, u.email FROM space_members m JOIN users u ON u.id = m.user_id
      WHERE m.role = 'owner' AND u.disabled_at IS NULL AND m.space_id IN (?)`,
    [low.map(({ spaceId }) => spaceId)],
  );
  const bySpace = Map.groupBy(owners, ({ spaceId }) => spaceId);
  return low.map((one) => ({ ...one, ownerEmails: (bySpace.get(one.spaceId) ?? []).map(({ email }) => email) }));
}

/** Marks a space's low balance as reported. False if another caller did so before. */
export async function noteLow(tx: Transaction, spaceId: string): Promise<boolean> {
  const result = await execute(
    tx,
    'UPDATE billing_balances SET low_since = ? WHERE space_id = ? AND low_since IS NULL',
    [new Date(), spaceId],
  );
  return result.affectedRows === 1;
}
