import type { AreaPurge } from '../database/areaPurge.ts';
import { deleteByIds, deleteInBatches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';

const ofPeople = 'It is a person’s, for all of their spaces.';

export const identityPurge: AreaPurge = {
  ofSpace: ['space_members', 'invitations'],
  own: ['data_keys'],
  kept: {
    spaces: 'The row says that there was such a space, and when it was deleted; its name goes.',
    users: ofPeople,
    user_identities: ofPeople,
    unproven_users: ofPeople,
    sessions: ofPeople,
    api_keys: ofPeople,
    auth_codes: ofPeople,
    sign_ins: ofPeople,
    signing_keys: 'They are the installation’s.',
  },
  /**
   * Destroys the space's keys. Data sealed with them, in a backup or a row that came too late, can never be read again.
   */
  async finish(database, spaceId) {
    await database.pool.query("UPDATE spaces SET name = '' WHERE id = ? AND deleted_at IS NOT NULL", [spaceId]);
    await database.pool.query('DELETE FROM data_keys WHERE scope = ?', [spaceId]);
  },
};

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
