import { deleteByIds, deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

const endedKeptMs = 30 * 86_400_000;

/** Expired or revoked keys. A key with children stays as long as they do: revocation goes from parent to child. */
const deadKeys = `SELECT id FROM (
    SELECT id FROM api_keys WHERE revoked_at < ? UNION SELECT id FROM api_keys WHERE expires_at < ?
  ) AS dead WHERE NOT EXISTS (SELECT 1 FROM api_keys child WHERE child.parent_key_id = dead.id) LIMIT ?`;

/**
 * Deletes rows that are of no use any more: codes, sign-ins and mails past their time, and sessions, keys and
 * invitations that ended a month ago. The sweeper calls it. Each statement is small, so that none holds up a sign-in.
 * Returns the number of deleted rows.
 */
export async function purgeIdentity(
  database: Database,
  now: Date,
  onBatch: () => void = () => undefined,
): Promise<number> {
  const remove = (sql: string, value: Date) => deleteInBatches(database, sql, [value], onBatch);
  const codes = await remove('DELETE FROM auth_codes WHERE expires_at < ? LIMIT ?', now);
  const signIns = await remove('DELETE FROM sign_ins WHERE expires_at < ? LIMIT ?', now);
  const mails = await remove('DELETE FROM mails WHERE expires_at < ? LIMIT ?', now);
  const before = new Date(now.getTime() - endedKeptMs);
  const invitations = await remove('DELETE FROM invitations WHERE expires_at < ? LIMIT ?', before);
  const sessions = await remove('DELETE FROM sessions WHERE expires_at < ? LIMIT ?', before);
  const keys = await deleteByIds(database, 'api_keys', deadKeys, [before, before], onBatch);
  return codes + signIns + mails + invitations + sessions + keys;
}
