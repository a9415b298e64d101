import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database/database.ts';

const rowsPerPage = 500;

/**
 * Every row of a table that waits for its time, a page at a time, the soonest first. `time` is the column that says when,
 * `timeOf` the same of a row as `read` makes it; `index` begins with that column.
 */
export async function* everyDue<Row extends { id: string }>(
  { pool }: Pick<Database, 'pool'>,
  { table, index, columns, time }: { table: string; index: string; columns: string; time: string },
  { read, timeOf }: { read: (row: RowDataPacket) => Row; timeOf: (row: Row) => Date | null },
): AsyncGenerator<Row[]> {
  for (let last: Row | undefined; ; ) {
    const behind = last === undefined ? '' : `AND (${time} > ? OR id > ?)`;
    const from = (last && timeOf(last)) ?? new Date(0);
    const [rows] = await pool.query<RowDataPacket[]>(
      `SELECT ${columns} FROM ${table} FORCE INDEX (${index})
        WHERE ${time} >= ? ${behind} ORDER BY ${time}, id LIMIT ${rowsPerPage}`,
      last === undefined ? [from] : [from, from, last.id],
    );
    if (rows.length === 0) return;
    const page = rows.map(read);
    yield page;
    last = page.at(-1);
  }
}
