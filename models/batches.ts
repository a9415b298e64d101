import type { ResultSetHeader } from 'mysql2';
import type { Database } from './database.ts';

const rowsPerStatement = 1_000;

/**
 * Runs a statement that deletes at most so many rows as its last placeholder says until there are none left, and
 * returns how many that were. Each is a commit of its own, so that nobody waits long for a lock.
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
