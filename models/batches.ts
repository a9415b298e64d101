import type { ResultSetHeader } from 'mysql2';
import type { Database } from './database.ts';

const rowsPerStatement = 1_000;

/**
 * Repeats a DELETE whose last placeholder is its LIMIT until no rows are left, and returns how many were deleted. Each
 * batch is its own commit, so that nobody waits long for a lock.
 */
export async function deleteInBatches(
  { pool }: Pick<Database, 'pool'>,
  statement: string,
  values: unknown[],
  onBatch: () => void = () => undefined,
): Promise<number> {
  for (let deleted = 0; ; ) {
    const [{ affectedRows }] = await pool.query<ResultSetHeader>(statement, [...values, rowsPerStatement]);
    deleted += affectedRows;
    onBatch();
    if (affectedRows < rowsPerStatement) return deleted;
  }
}
