import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database/database.ts';

/** A row that waits for something, and its position in a list of such rows. */
export interface Waiting {
  id: string;
  since: Date;
}

/** Which part of a list of waiting rows is wanted. */
export interface OldestFirst<Row extends Waiting> {
  /** Only what has waited since before this. */
  before: Date;
  /** The last row of the page before. */
  after?: Row | undefined;
}

/** How many rows a sweep reads at once. */
export const sweepPageSize = 500;

/**
 * A page of the rows that wait, oldest first. `columns` are besides `id` and `since`; `time` is the column that says
 * since when a row waits. An index that begins with what `where` fixes and then has `time` reads just this page; it is
 * named as `index` where the table has another one to tempt the server, which would then sort all that waits.
 */
export async function oldestFirst<Row extends Waiting>(
  { pool }: Pick<Database, 'pool'>,
  list: { table: string; index?: string; columns?: string[]; where: string; values?: unknown[]; time: string },
  { before, after }: OldestFirst<Row>,
): Promise<Row[]> {
  const { table, index, columns = [], where, values = [], time } = list;
  const next = after === undefined ? '' : `AND ${time} >= ? AND (${time} > ? OR id > ?)`;
  const nextValues = after === undefined ? [] : [after.since, after.since, after.id];
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT ${['id', `${time} AS since`, ...columns].join(', ')} FROM ${table}
      ${index === undefined ? '' : `FORCE INDEX (${index})`}
      WHERE ${where} AND ${time} < ? ${next} ORDER BY ${time}, id LIMIT ${sweepPageSize}`,
    [...values, before, ...nextValues],
  );
  return rows as unknown as Row[];
}
