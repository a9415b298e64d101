import type { ResultSetHeader, RowDataPacket } from 'mysql2';
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

/** The same for rows that a SELECT of their ids finds, whose last placeholder is its LIMIT. */
export async function deleteByIds(
  { pool }: Pick<Database, 'pool'>,
  table: string,
  select: string,
  values: unknown[],
  onBatch: () => void = () => undefined,
): Promise<number> {
  for (let deleted = 0; ; ) {
    const [rows] = await pool.query<RowDataPacket[]>(select, [...values, rowsPerStatement]);
    if (rows.length > 0) {
      const ids = rows.map(({ id }) => id as string);
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(`DELETE FROM ${table} WHERE id IN (?)`, [ids]);
      deleted += affectedRows;
    }
    onBatch();
    if (rows.length < rowsPerStatement) return deleted;
  }
}
