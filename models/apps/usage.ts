import type { Transaction } from 'sequelize';
import { execute, select } from '../database/sql.ts';

/** Locks a space's usage. Transactions that count what its apps store or run are serialized here. */
export async function lockUsage(tx: Transaction, spaceId: string): Promise<{ deliveredBytes: number }> {
  const make = 'INSERT INTO app_usage (space_id) VALUES (?) ON DUPLICATE KEY UPDATE space_id = app_usage.space_id';
  await execute(tx, make, [spaceId]);
  const sql = 'SELECT delivered_bytes FROM app_usage WHERE space_id = ? FOR UPDATE';
  const [row] = await select<{ deliveredBytes: number | string }>(tx, sql, [spaceId]);
  return { deliveredBytes: Number(row?.deliveredBytes ?? 0) };
}

/** Changes a locked usage. */
export async function countDelivered(tx: Transaction, spaceId: string, bytes: number): Promise<void> {
  if (bytes === 0) return;
  const change = bytes > 0 ? 'delivered_bytes + ?' : 'delivered_bytes - LEAST(delivered_bytes, ?)';
  await execute(tx, `UPDATE app_usage SET delivered_bytes = ${change} WHERE space_id = ?`, [Math.abs(bytes), spaceId]);
}
