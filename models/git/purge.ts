import type { RowDataPacket } from 'mysql2';
import type { AreaPurge } from '../database/areaPurge.ts';
import type { Database } from '../database/database.ts';

/** Emptied before the other rows of a space, by {@link removeRepositoriesOf}: orders end, and mirrors go from disks. */
export const gitPurge: AreaPurge = {
  ofSpace: [
    'git_credentials',
    'git_installations',
    'git_installation_repositories',
    'git_connections',
    'git_orders',
    'git_bundles',
    'git_drafts',
    'git_repositories',
  ],
};

/** Marks the repositories of a deleted space as gone. Returns those that there still are: their workflows remove them. */
export async function removeRepositoriesOf(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
): Promise<{ id: string; spaceId: string }[]> {
  await pool.query('UPDATE git_repositories SET removed_at = ? WHERE space_id = ? AND removed_at IS NULL', [
    new Date(),
    spaceId,
  ]);
  const sql = 'SELECT item_id AS id, space_id AS spaceId FROM git_repositories WHERE space_id = ? LIMIT 200';
  const [rows] = await pool.query<RowDataPacket[]>(sql, [spaceId]);
  return rows as unknown as { id: string; spaceId: string }[];
}
