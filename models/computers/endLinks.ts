import type { Database } from '../database/database.ts';

/** Ends every link to a port, a desktop and a browser. */
export async function endLinks({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const now = new Date();
  for (const table of ['port_links', 'desktop_links']) {
    await pool.query(`UPDATE ${table} SET revoked_at = ? WHERE revoked_at IS NULL`, [now]);
  }
  await pool.query('UPDATE browser_links SET expires_at = ?, token_hash = NULL WHERE expires_at > ?', [now, now]);
}
