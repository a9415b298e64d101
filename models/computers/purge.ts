import type { AreaPurge } from '../database/areaPurge.ts';
import type { Database } from '../database/database.ts';
import { type Computer, computerColumns, computerOf } from './computer.ts';

/** {@link deleteComputersOf} empties these before other rows of a space, because homes go from their hosts too. */
export const computersPurge: AreaPurge = {
  ofSpace: ['port_link_visits', 'port_links', 'computers', 'computer_secrets'],
  kept: {
    computer_hosts: 'They are the installation’s.',
    computer_remains: 'They name homes that a host still has to remove, and nothing of their space.',
  },
};

/** Deletes the computers of a deleted space. Returns those that still exist: their workflows remove them. */
export async function deleteComputersOf({ pool }: Pick<Database, 'pool'>, spaceId: string): Promise<Computer[]> {
  const now = new Date();
  await pool.query(
    `UPDATE computers SET wish = 'delete', deleted_at = COALESCE(deleted_at, ?), default_of = NULL, status_at = ?
      WHERE space_id = ? AND (wish IS NULL OR wish <> 'delete')`,
    [now, now, spaceId],
  );
  const [rows] = await pool.query(`SELECT ${computerColumns} FROM computers WHERE space_id = ? LIMIT 200`, [spaceId]);
  return (rows as object[]).map(computerOf);
}
