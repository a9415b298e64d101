import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';

/** Threads that were to be kept until now only, and in which nothing runs, the longest expired first. */
export async function expiredThreads({ pool }: Pick<Database, 'pool'>, limit: number): Promise<string[]> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT id FROM threads WHERE expires_at < ? AND deleted_at IS NULL AND active_turn_id IS NULL
      ORDER BY expires_at, id LIMIT ?`,
    [new Date(), limit],
  );
  return rows.map(({ id }) => String(id));
}
