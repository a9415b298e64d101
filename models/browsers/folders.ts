import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type OldestFirst, oldestFirst, type Waiting } from '../sweeping/oldestFirst.ts';

/** Below the home of a computer. */
const root = '.local/share/atrium/browsers';

/** Where the profile of a session is: of a profile that is kept, by that, else by the session itself. */
export function profileFolder({ id, profileId }: { id: string; profileId: string | null }): string {
  return `${root}/${profileId ?? id}`;
}

/** Where the downloads of a session land before they are put into the drive. */
export function downloadsFolder({ id }: { id: string }): string {
  return `${root}/${id}-downloads`;
}

/** What there may be below the home for this owner. */
export function foldersOf(ownerId: string): string[] {
  const own = `${root}/${ownerId}`;
  return [own, `${own}-new`, `${own}-save`, `${own}-open`, `${own}-downloads`];
}

/** Notes that there will be files of a profile, or of a session without one, in the home of a computer. */
export async function noteFolder(
  tx: Transaction,
  { spaceId, ownerId, computerId }: { spaceId: string; ownerId: string; computerId: string },
): Promise<void> {
  await execute(tx, 'INSERT IGNORE INTO browser_folders (id, space_id, owner_id, computer_id) VALUES (?)', [
    [newId('browserFolder'), spaceId, ownerId, computerId],
  ]);
}

/** All files of this owner are to be removed. */
export async function removeFoldersOf(tx: Transaction, ownerId: string): Promise<void> {
  await execute(tx, 'UPDATE browser_folders SET remove_at = ? WHERE owner_id = ?', [new Date(), ownerId]);
}

export type UnwantedFolder = Waiting & { spaceId: string; ownerId: string; computerId: string };

/** Folders that are to be removed, since before a time. */
export function unwantedFolders(
  database: Pick<Database, 'pool'>,
  page: OldestFirst<UnwantedFolder>,
): Promise<UnwantedFolder[]> {
  const columns = ['space_id AS spaceId', 'owner_id AS ownerId', 'computer_id AS computerId'];
  const list = { table: 'browser_folders', columns, where: 'remove_at IS NOT NULL', time: 'remove_at' };
  return oldestFirst(database, { ...list, index: 'browser_folders_remove' }, page);
}

/** It is gone. */
export async function forgetFolder({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await pool.query('DELETE FROM browser_folders WHERE id = ?', [id]);
}

/** It could not be removed now: it is looked at again later. */
export async function postponeFolder({ pool }: Pick<Database, 'pool'>, id: string, until: Date): Promise<void> {
  await pool.query('UPDATE browser_folders SET remove_at = ? WHERE id = ?', [until, id]);
}
