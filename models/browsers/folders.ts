import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import type { BrowserSession } from './session.ts';

/** A path below the home of a computer. */
const root = '.local/share/atrium/browsers';

/** The folder of a session's profile, named by the profile, or by the session when it has no profile. */
export function profileFolder({ id, profileId }: { id: string; profileId: string | null }): string {
  return `${root}/${profileId ?? id}`;
}

/** The folder in which a session's downloads are until they are in the drive. */
export function downloadsFolder({ id }: { id: string }): string {
  return `${root}/${id}-downloads`;
}

/** The parameters for starting a session's Chromium. */
export function browserSpec(session: BrowserSession) {
  const { id, width, height, display } = session;
  const folders = { profileFolder: profileFolder(session), downloadsFolder: downloadsFolder(session) };
  return { id, width, height, ...folders, ...(display !== null && { display }) };
}

/** All folders below a home that a profile or session may have. */
export function foldersOf(ownerId: string): string[] {
  const own = `${root}/${ownerId}`;
  return [own, `${own}-new`, `${own}-save`, `${own}-open`, `${own}-downloads`];
}

/** Notes that the home of a computer will have files of an owner. */
export async function noteFolder(
  tx: Transaction,
  { spaceId, ownerId, computerId }: { spaceId: string; ownerId: string; computerId: string },
): Promise<void> {
  await execute(tx, 'INSERT IGNORE INTO browser_folders (id, space_id, owner_id, computer_id) VALUES (?)', [
    [newId('browserFolder'), spaceId, ownerId, computerId],
  ]);
}

/** Orders the removal of an owner's files from all computers. */
export async function removeFoldersOf(tx: Transaction, ownerId: string): Promise<void> {
  await execute(tx, 'UPDATE browser_folders SET remove_at = ? WHERE owner_id = ?', [new Date(), ownerId]);
}

export type UnwantedFolder = Waiting & { spaceId: string; ownerId: string; computerId: string };

/** Folders that are to be removed. */
export const unwantedFolders = waitingIn<UnwantedFolder>({
  table: 'browser_folders',
  index: 'browser_folders_remove',
  columns: ['space_id', 'owner_id', 'computer_id'],
  where: 'remove_at IS NOT NULL',
  time: 'remove_at',
});

/** Deletes the row of a removed folder. */
export async function forgetFolder({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(pool, 'DELETE FROM browser_folders WHERE id = ?', [id]);
}

/** Makes the sweep try again at this time, because the folder could not be removed now. */
export async function postponeFolder({ pool }: Pick<Database, 'pool'>, id: string, until: Date): Promise<void> {
  await execute(pool, 'UPDATE browser_folders SET remove_at = ? WHERE id = ?', [until, id]);
}
