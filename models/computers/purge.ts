import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Computer, computerColumns, computerOf } from './computer.ts';

/** Deletes the computers of a deleted space. Returns those that there still are: their workflows remove them. */
export async function deleteComputersOf({ pool }: Pick<Database, 'pool'>, spaceId: string): Promise<Computer[]> {
  const now = new Date();
  await execute(
    pool,
    `UPDATE computers SET wish = 'delete', deleted_at = COALESCE(deleted_at, ?), default_of = NULL, status_at = ?
      WHERE space_id = ? AND (wish IS NULL OR wish <> 'delete')`,
    [now, now, spaceId],
  );
  const rows = await select<object>(pool, `SELECT ${computerColumns} FROM computers WHERE space_id = ? LIMIT 200`, [
    spaceId,
  ]);
  return rows.map(computerOf);
}
