import type { Database } from '../database/database.ts';

/** Ends every session and every pending sign-in. API keys stay as they are. */
export async function endSignIns({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await pool.query('UPDATE sessions SET revoked_at = ? WHERE revoked_at IS NULL', [new Date()]);
  for (const table of ['auth_codes', 'sign_ins']) await pool.query(`DELETE FROM ${table}`);
}
