import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';

/** Threads whose time to be kept is over and in which no turn runs, the longest expired first. */
export async function expiredThreads({ pool }: Pick<Database, 'pool'>, limit: number): Promise<string[]> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT id FROM threads WHERE expires_at < ? AND deleted_at IS NULL AND active_turn_id IS NULL
      ORDER BY expires_at, id LIMIT ?`,
    [new Date(), limit],
  );
  return rows.map(({ id }) => String(id));
}
