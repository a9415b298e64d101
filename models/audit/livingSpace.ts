import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { select } from '../database/sql.ts';

/**
 * Rejects with 404 when the space has been deleted, and keeps it from being deleted until the transaction ends: what is
 * written with it is there before the purge begins to look. That the caller was a member a moment ago says nothing of
 * now.
 */
export async function requireLivingSpace(tx: Transaction, spaceId: string): Promise<void> {
  const sql = 'SELECT deleted_at AS deletedAt FROM spaces WHERE id = ? LOCK IN SHARE MODE';
  const [space] = await select<{ deletedAt: Date | null }>(tx, sql, [spaceId]);
  if (space !== undefined && space.deletedAt !== null) throw notFound('space');
}
