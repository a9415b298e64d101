import type { Database } from '../database/database.ts';

/**
 * Turns off every automatic top-up until its owner sets it again, as a refused charge does. For a restored
 * installation, which cannot know all charges that were made.
 */
export async function stopAutoTopUps({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const sql = 'UPDATE billing_settings SET auto_failed_at = ? WHERE auto_enabled = 1 AND auto_failed_at IS NULL';
  await pool.query(sql, [new Date()]);
}
