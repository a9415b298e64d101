import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { removeFoldersOf } from './folders.ts';
import { lockProfile } from './profile.ts';
import type { BrowserSession } from './session.ts';

/**
 * A session's profile is complete in the store, and takes the place of the one that was saved before. Only the session
 * that has it now gets this far: of a later one that is newer, what an older one brings is given up. It has ended then.
 */
export async function keepSave(
  database: Database,
  session: BrowserSession,
  { objectKey, sizeBytes, sha256 }: { objectKey: string; sizeBytes: number; sha256: Buffer },
): Promise<void> {
  const { spaceId, profileId, number } = session;
  if (profileId === null) throw new Error('Nothing is saved of a session without a profile.');
  await transaction(database, async (tx) => {
    const profile = await lockProfile(tx, { spaceId, profileId });
    if (profile.opened !== number || profile.saved >= number) throw overtaken();
    await driveModels(tx).DriveObject.keep(objectKey, sha256, tx);
    if (profile.objectKey !== null) await driveModels(tx).DriveObject.doom([profile.objectKey], tx);
    const now = new Date();
    const saved = { saved: number, object_key: objectKey, size_bytes: sizeBytes, saved_at: now };
    await execute(tx, 'UPDATE browser_profiles SET ? WHERE id = ?', [saved, profileId]);
    await end(tx, session, { saved_at: now });
  });
}

function overtaken(): DomainError {
  return new DomainError('conflict', 'PROFILE_OVERTAKEN', 'A later session has had this profile since.');
}

/**
 * A session has ended; `saveCode` says why its profile was not saved, where that was to be. What it has left on its
 * computer, but for downloads that have no place in the drive, is removed.
 */
export async function endBrowser(database: Database, session: BrowserSession, saveCode: string | null): Promise<void> {
  await transaction(database, (tx) => end(tx, session, { save_code: saveCode }));
}

async function end(
  tx: Transaction,
  { id, downloadCode }: BrowserSession,
  outcome: Record<string, unknown>,
): Promise<void> {
  const now = new Date();
  const ended = { ...outcome, status: 'ended', status_at: now, live_profile: null };
  const sql = "UPDATE browser_sessions SET ?, ended_at = COALESCE(ended_at, ?) WHERE id = ? AND status <> 'ended'";
  await execute(tx, sql, [ended, now, id]);
  if (downloadCode === null) await removeFoldersOf(tx, id);
}
