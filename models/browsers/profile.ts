import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';

/** A Chromium profile: what pages keep from one session to the next. */
export interface BrowserProfile {
  id: string;
  spaceId: string;
  name: string;
  /** The computer for sessions that name none. */
  computerId: string;
  /** How many sessions have used it. */
  opened: number;
  /** The number of the session after which it was last saved; 0 before the first save. */
  saved: number;
  /** The object with the saved profile. */
  objectKey: string | null;
  sizeBytes: number | null;
  savedAt: Date | null;
  createdBy: string;
  createdAt: Date;
}

const columns = `id, space_id, name, computer_id, opened, saved, object_key, size_bytes, saved_at, created_by,
  created_at`;

function read(row: object): BrowserProfile {
  const profile = row as BrowserProfile;
  return { ...profile, sizeBytes: profile.sizeBytes === null ? null : Number(profile.sizeBytes) };
}

export interface ProfileRef {
  spaceId: string;
  profileId: string;
}

export async function findProfile({ pool }: Pick<Database, 'pool'>, id: string): Promise<BrowserProfile | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM browser_profiles WHERE id = ?`, [id]);
  return row && read(row);
}

/** The oldest profile of this name. */
export async function findProfileNamed(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
  name: string,
): Promise<BrowserProfile | undefined> {
  const sql = `SELECT ${columns} FROM browser_profiles WHERE space_id = ? AND name = ? ORDER BY id LIMIT 1`;
  const [row] = await select(pool, sql, [spaceId, name]);
  return row && read(row);
}

/** Throws 404. */
export async function getProfile(
  database: Pick<Database, 'pool'>,
  { spaceId, profileId }: ProfileRef,
): Promise<BrowserProfile> {
  const profile = await findProfile(database, profileId);
  if (profile?.spaceId !== spaceId) throw notFound('browser profile');
  return profile;
}

/** A profile with its row locked. Throws 404. */
export async function lockProfile(tx: Transaction, { spaceId, profileId }: ProfileRef): Promise<BrowserProfile> {
  const sql = `SELECT ${columns} FROM browser_profiles WHERE id = ? FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [profileId]);
  const profile = row && read(row);
  if (profile?.spaceId !== spaceId) throw notFound('browser profile');
  return profile;
}

/** A space’s profiles, oldest first. */
export async function listProfiles(
  database: Pick<Database, 'pool'>,
  spaceId: string,
  page: PageRequest,
): Promise<Page<BrowserProfile>> {
  const sql = `SELECT ${columns} FROM browser_profiles WHERE space_id = ?`;
  return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc', read });
}
