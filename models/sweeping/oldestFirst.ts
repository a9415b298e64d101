import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** A row that waits for something, and its position in a list of such rows. */
export interface Waiting {
  id: string;
  since: Date;
}

/** The part of a list of waiting rows to read. */
export interface OldestFirst<Row extends Waiting> {
  /** Only rows that have waited since before this time. */
  before: Date;
  /** The last row of the page before. */
  after?: Row | undefined;
}

/**
 * A list of waiting rows. If an index begins with the columns that `where` fixes and continues with `time`, each page
 * reads only its own rows.
 */
export interface WaitingList {
  table: string;
  /** An index to force. Needed if the server might choose another one and then sort all waiting rows. */
  index?: string;
  /** SQL that joins other tables. */
  joins?: string;
  /** The id column; `id` by default. */
  id?: string;
  /** Columns besides `id` and `since`. */
  columns?: readonly string[];
  where: string;
  values?: readonly unknown[];
  /** The column that says since when a row waits, or when it is due. */
  time: string;
}

/** How many rows a sweep reads at once. */
export const sweepPageSize = 500;

/** A page of the waiting rows, oldest first. */
export async function oldestFirst<Row extends Waiting>(
  { pool }: Pick<Database, 'pool'>,
  list: WaitingList,
  { before, after }: OldestFirst<Waiting>,
): Promise<Row[]> {
  const { table, index, joins = '', id = 'id', columns = [], where, values = [], time } = list;
  const next = after === undefined ? '' : `AND ${time} >= ? AND (${time} > ? OR ${id} > ?)`;
  const nextValues = after === undefined ? [] : [after.since, after.since, after.id];
  const sql = `SELECT ${[`${id} AS id`, `${time} AS since`, ...columns].join(', ')} FROM ${table}
      ${index === undefined ? '' : `FORCE INDEX (${index})`} ${joins}
      WHERE ${where} AND ${time} < ? ${next} ORDER BY ${time}, ${id} LIMIT ${sweepPageSize}`;
  return select<Row>(pool, sql, [...values, before, ...nextValues]);
}

/** Returns a function that reads a list of waiting rows, a page at a time. */
export function waitingIn<Row extends Waiting>(list: WaitingList) {
  return (database: Pick<Database, 'pool'>, page: OldestFirst<Row>): Promise<Row[]> =>
    oldestFirst<Row>(database, list, page);
}

/** Later than the time of any row. */
const never = new Date('9999-01-01T00:00:00Z');

/** Every row of a list that has a time, even one in the future, a page at a time. */
export async function* everyWaiting<Row extends Waiting>(
  database: Pick<Database, 'pool'>,
  list: WaitingList,
): AsyncGenerator<Row[]> {
  for (let after: Row | undefined; ; ) {
    const page: Row[] = await oldestFirst<Row>(database, list, { before: never, after });
    if (page.length === 0) return;
    yield page;
    after = page.at(-1);
  }
}
