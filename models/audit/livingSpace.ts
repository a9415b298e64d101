import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { select } from '../database/sql.ts';

/**
 * Rejects with 404 when the space has been deleted. Otherwise it cannot be deleted until the transaction ends, so the
 * purge will see what the transaction writes. An earlier check of membership does not ensure that.
 */
export async function requireLivingSpace(tx: Transaction, spaceId: string): Promise<void> {
  const sql = 'SELECT deleted_at FROM spaces WHERE id = ? LOCK IN SHARE MODE';
  const [space] = await select<{ deletedAt: Date | null }>(tx, sql, [spaceId]);
  if (space !== undefined && space.deletedAt !== null) throw notFound('space');
}

/**
 * Locks the space, so that what its limits count is changed by one transaction at a time. Rejects with 404 when it has
 * been deleted.
 */
export async function lockLivingSpace(tx: Transaction, spaceId: string): Promise<void> {
  const sql = 'SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL FOR UPDATE';
  if ((await select(tx, sql, [spaceId])).length === 0) throw notFound('space');
}
