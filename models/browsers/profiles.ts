import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { findComputer } from '../computers/computer.ts';
import { defaultComputer, requestedComputer } from '../computers/defaultComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { removeFoldersOf } from './folders.ts';
import { type BrowserProfile, findProfileNamed, getProfile, lockProfile, type ProfileRef } from './profile.ts';
import { liveSessionOf, profileInUse } from './session.ts';

export interface NewProfile extends ProfileRef {
  name: string;
  computerId: string | undefined;
  /** Whether an existing profile of this name is used instead. */
  isOnlyOfName?: boolean;
}

/** Makes a profile. The same id again returns the same profile. Throws 404, 422 `TOO_MANY_PROFILES`. */
export async function createProfile(
  { database, config }: { database: Database; config: Pick<Config, 'browsers'> },
  { spaceId, profileId, name, computerId, isOnlyOfName = false }: NewProfile,
  actor: Actor & { userId: string },
): Promise<BrowserProfile> {
  const computer = await requestedComputer(database, spaceId, computerId);
  const made = await transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const sql = 'SELECT id, name FROM browser_profiles WHERE space_id = ? ORDER BY id';
    const there = await select<{ id: string; name: string }>(tx, sql, [spaceId]);
    const same = there.find((one) => one.id === profileId || (isOnlyOfName && one.name === name));
    if (same !== undefined) return same.id;
    const { profilesPerSpace } = config.browsers;
    if (there.length >= profilesPerSpace) {
      const detail = `A space has at most ${profilesPerSpace} browser profiles. Delete one.`;
      throw new DomainError('unprocessable', 'TOO_MANY_PROFILES', detail);
    }
    await insert(tx, 'browser_profiles', {
      id: profileId,
      spaceId,
      name,
      computerId: computer.id,
      opened: 0,
      saved: 0,
      createdBy: actor.userId,
      createdAt: new Date(),
    });
    await appendAudit(tx, spaceId, actor, 'browser-profile.made', profileId);
    return profileId;
  });
  return getProfile(database, { spaceId, profileId: made });
}

/** Throws 404. */
export async function renameProfile(
  database: Database,
  ref: ProfileRef,
  name: string,
  actor: Actor,
): Promise<BrowserProfile> {
  await transaction(database, async (tx) => {
    await lockProfile(tx, ref);
    await execute(tx, 'UPDATE browser_profiles SET name = ? WHERE id = ?', [name, ref.profileId]);
    await appendAudit(tx, ref.spaceId, actor, 'browser-profile.renamed', ref.profileId);
  });
  return getProfile(database, ref);
}

/**
 * Deletes a profile. A sweep removes its files from computers and from the object store. Throws 404, 409
 * `PROFILE_IN_USE`.
 */
export async function deleteProfile(database: Database, ref: ProfileRef, actor: Actor): Promise<void> {
  await transaction(database, async (tx) => {
    const { id, objectKey } = await lockProfile(tx, ref);
    const live = await liveSessionOf(tx, id);
    if (live !== undefined) throw profileInUse(live);
    if (objectKey !== null) await driveModels(tx).DriveObject.doom([objectKey], tx);
    await removeFoldersOf(tx, id);
    await execute(tx, 'DELETE FROM browser_profiles WHERE id = ?', [id]);
    await appendAudit(tx, ref.spaceId, actor, 'browser-profile.deleted', id);
  });
}

/** The computer for a session that names none: the profile’s own, or the space’s default one if that is deleted. */
export async function computerOf(database: Database, { spaceId, computerId }: BrowserProfile): Promise<string> {
  const own = await findComputer(database, computerId);
  if (own !== undefined && own.spaceId === spaceId && own.deletedAt === null) return own.id;
  return (await defaultComputer(database, spaceId)).id;
}

/** The name of the profile that agents use by default. */
export const defaultProfileName = 'Default';

/** The default profile, which is made if there is none. Throws what {@link createProfile} throws. */
export async function defaultProfile(
  deps: Parameters<typeof createProfile>[0],
  ref: ProfileRef,
  actor: Actor & { userId: string },
): Promise<BrowserProfile> {
  const name = defaultProfileName;
  const found = await findProfileNamed(deps.database, ref.spaceId, name);
  return found ?? createProfile(deps, { ...ref, name, computerId: undefined, isOnlyOfName: true }, actor);
}
