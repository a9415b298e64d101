import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { select } from '../database/sql.ts';

/**
 * Rejects with 404 when the space has been deleted. Otherwise it cannot be deleted until the transaction ends, so the
 * purge will see what the transaction writes. An earlier check of membership does not ensure that.
 */
export async function requireLivingSpace(tx: Transaction, spaceId: string): Promise<void> {
  const sql = 'SELECT deleted_at AS deletedAt FROM spaces WHERE id = ? LOCK IN SHARE MODE';
  const [space] = await select<{ deletedAt: Date | null }>(tx, sql, [spaceId]);
  if (space !== undefined && space.deletedAt !== null) throw notFound('space');
}
