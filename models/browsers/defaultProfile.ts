import type { RowDataPacket } from 'mysql2/promise';
import type { Actor } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { type BrowserProfile, findProfile, type ProfileRef } from './profile.ts';
import { createProfile } from './profiles.ts';

/** What the profile is called that agents use who name none. */
export const defaultProfileName = 'Default';

/** The oldest one of this name. */
export async function findProfileNamed(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
  name: string,
): Promise<BrowserProfile | undefined> {
  const sql = 'SELECT id FROM browser_profiles WHERE space_id = ? AND name = ? ORDER BY id LIMIT 1';
  const [rows] = await pool.query<RowDataPacket[]>(sql, [spaceId, name]);
  return rows[0] && findProfile({ pool }, String(rows[0].id));
}

/** The profile of that name, which is made where there is none. Throws what {@link createProfile} does. */
export async function defaultProfile(
  deps: Parameters<typeof createProfile>[0],
  ref: ProfileRef,
  actor: Actor & { userId: string },
): Promise<BrowserProfile> {
  const name = defaultProfileName;
  const found = await findProfileNamed(deps.database, ref.spaceId, name);
  return found ?? createProfile(deps, { ...ref, name, computerId: undefined, isOnlyOfName: true }, actor);
}
