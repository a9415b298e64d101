import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { removeFoldersOf } from './folders.ts';
import { lockProfile } from './profile.ts';
import type { BrowserSession } from './session.ts';

/**
 * Records a complete save of a session's profile, in place of the earlier save, and ends the session. Throws 409
 * `PROFILE_OVERTAKEN` if a later session has opened the profile.
 */
export async function keepSave(
  database: Database,
  session: BrowserSession,
  { objectKey, sizeBytes, sha256 }: { objectKey: string; sizeBytes: number; sha256: Buffer },
): Promise<void> {
  const { spaceId, profileId, number } = session;
  if (profileId === null) throw new Error('A session without a profile has nothing to save.');
  await transaction(database, async (tx) => {
    const profile = await lockProfile(tx, { spaceId, profileId });
    if (profile.opened !== number || profile.saved >= number) throw overtaken();
    await driveModels(tx).DriveObject.keep(objectKey, sha256, tx);
    if (profile.objectKey !== null) await driveModels(tx).DriveObject.doom([profile.objectKey], tx);
    const now = new Date();
    const saved = { saved: number, objectKey, sizeBytes, savedAt: now };
    await execute(tx, 'UPDATE browser_profiles SET ? WHERE id = ?', [saved, profileId]);
    await end(tx, session, { savedAt: now });
  });
}

function overtaken(): DomainError {
  return new DomainError(
    'conflict',
    'PROFILE_OVERTAKEN',
    'A later session has used this profile since, so this one was not saved.',
  );
}

/**
 * Ends a session. `saveCode` says why its profile was not saved; null if there was nothing to save. The session's files
 * on the computer are removed, unless there are downloads that the drive does not take.
 */
export async function endBrowser(database: Database, session: BrowserSession, saveCode: string | null): Promise<void> {
  await transaction(database, (tx) => end(tx, session, { saveCode }));
}

async function end(
  tx: Transaction,
  { id, downloadCode }: BrowserSession,
  outcome: Record<string, unknown>,
): Promise<void> {
  const now = new Date();
  const ended = { ...outcome, status: 'ended', statusAt: now, liveProfile: null };
  const sql = "UPDATE browser_sessions SET ?, ended_at = COALESCE(ended_at, ?) WHERE id = ? AND status <> 'ended'";
  await execute(tx, sql, [ended, now, id]);
  if (downloadCode === null) await removeFoldersOf(tx, id);
}
