import { escape as quoted, raw } from 'mysql2';
import type { PoolConnection, ResultSetHeader } from 'mysql2/promise';
import type { Database } from './database.ts';
import type { Statement } from './sql.ts';

/**
 * Runs statements as one transaction in a single round trip. Waits for this process between statements, most of a short
 * transaction's time and of the time it holds its locks, do not occur. The first statement that fails ends it.
 * Undefined when the server refused it and did nothing. Rejects when the outcome is unknown.
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
 * A value for a NOT NULL column if the statement before found `rows` rows, else NULL, which ends the transaction. Only
 * for an INSERT of one row: in others, some server settings let NULL pass.
 */
export function ifFound(rows: number, value: string): ReturnType<typeof raw> {
  return raw(`IF(ROW_COUNT() = ${rows}, ${quoted(value)}, NULL)`);
}

/** The number that the previous INSERT gave its row. */
export const lastNumber = raw('LAST_INSERT_ID()');

async function undo(connection: PoolConnection): Promise<void> {
  try {
    await connection.query('ROLLBACK');
    connection.release();
  } catch {
    connection.destroy();
  }
}

/** Whether the server itself answered, instead of the connection breaking. */
function isRefusal(error: unknown): boolean {
  const { sqlState, fatal } = error as { sqlState?: unknown; fatal?: boolean };
  return typeof sqlState === 'string' && fatal !== true;
}
