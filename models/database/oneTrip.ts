import { escape as quoted, raw } from 'mysql2';
import type { PoolConnection, ResultSetHeader } from 'mysql2/promise';
import type { Database } from './database.ts';
import type { Statement } from './sql.ts';

/**
 * Runs statements as one transaction that goes to the server whole, and comes back whole: between its statements there
 * is no wait for this process, which is most of what a short one takes and of the time for which it holds its locks. The
 * first statement that fails ends it. Undefined where the server refused it: then nothing was done. Rejects where nobody
 * knows whether it was done.
 */
export async function commitInOneTrip(
  { trips }: Pick<Database, 'trips'>,
  statements: readonly Statement[],
): Promise<ResultSetHeader[] | undefined> {
  const connection = await trips.getConnection();
  const sql = ['START TRANSACTION', ...statements.map((each) => each.sql), 'COMMIT'].join(';\n');
  const values = statements.flatMap((each) => each.values);
  try {
    const [results] = await connection.query<ResultSetHeader[]>(sql, values);
    connection.release();
    return results.slice(1, -1);
  } catch (error) {
    if (!isRefusal(error)) {
      connection.destroy();
      throw error;
    }
    await undo(connection);
    return undefined;
  }
}

/**
 * A value for a column that is never NULL, if the statement before found so many rows: else it is NULL, which ends the
 * transaction. Only in an INSERT of one row: in others, some settings of a server let it pass.
 */
export function ifFound(rows: number, value: string): ReturnType<typeof raw> {
  return raw(`IF(ROW_COUNT() = ${rows}, ${quoted(value)}, NULL)`);
}

/** The number that the INSERT before has given its row. */
export const lastNumber = raw('LAST_INSERT_ID()');

async function undo(connection: PoolConnection): Promise<void> {
  try {
    await connection.query('ROLLBACK');
    connection.release();
  } catch {
    connection.destroy();
  }
}

/** The server's own answer, and not a connection that has broken. */
function isRefusal(error: unknown): boolean {
  const { sqlState, fatal } = error as { sqlState?: unknown; fatal?: boolean };
  return typeof sqlState === 'string' && fatal !== true;
}
