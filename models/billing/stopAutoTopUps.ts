import type { Database } from '../database/database.ts';

/**
 * Turns every automatic top-up off until its owner sets it again, as a refused charge does: for an installation that
 * cannot know of all that it has charged.
 */
export async function stopAutoTopUps({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const sql = 'UPDATE billing_settings SET auto_failed_at = ? WHERE auto_enabled = 1 AND auto_failed_at IS NULL';
  await pool.query(sql, [new Date()]);
}
