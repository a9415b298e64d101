import type { RowDataPacket } from 'mysql2';
import { IndexHints, Op, type WhereOptions } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Database } from './database.ts';
import { fieldOf, select } from './sql.ts';

/** The requested part of a list. */
export interface PageRequest {
  /** From 1 to 200; the contract checks it. */
  limit: number;
  /** The previous page's `nextCursor`. */
  cursor?: string | undefined;
}

export interface Page<T> {
  data: T[];
  /** Null on the last page. */
  nextCursor: string | null;
}

/**
 * The key after which the page begins. Undefined for the first page. Cursors are opaque to clients, so that a list's
 * order can change without breaking one. A list whose keys are more than ids passes their `pattern`.
 */
export function decodeCursor(cursor: string | undefined, pattern = /^/): string | undefined {
  if (cursor === undefined) return undefined;
  const key = Buffer.from(cursor, 'base64url').toString('utf8');
  if (key === '' || encodeCursor(key) !== cursor || !pattern.test(key)) throw invalidCursor();
  return key;
}

export function invalidCursor(): DomainError {
  return new DomainError(
    'invalid',
    'INVALID_CURSOR',
    'The cursor does not come from this list. Start again without a cursor.',
    {
      errors: [{ pointer: 'cursor', detail: 'is not a cursor of this list' }],
    },
  );
}

export function encodeCursor(key: string): string {
  return Buffer.from(key, 'utf8').toString('base64url');
}

/** A page of a list that can be read in either order. */
export interface TwoWayPage<T> extends Page<T> {
  /** The cursor of its first row. In the opposite order it leads to the rows before. Null for an empty list. */
  previousCursor: string | null;
}

/** Makes a page of rows that were read with `limit + 1`. The extra row tells whether there are more. */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string): Page<T> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  return { data, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(keyOf(last)) : null };
}

/**
 * The same for a list that can be read in either order. Pass `hasMore` when no extra row was read. An empty page keeps
 * the requested cursor.
 */
export function toTwoWayPage<T>(
  rows: readonly T[],
  { limit, cursor, hasMore = rows.length > limit }: PageRequest & { hasMore?: boolean },
  keyOf: (row: T) => string,
): TwoWayPage<T> {
  const data = rows.slice(0, limit);
  const [first, last] = [data[0], data.at(-1)];
  return {
    data,
    nextCursor: hasMore && last !== undefined ? encodeCursor(keyOf(last)) : null,
    previousCursor: first === undefined ? (cursor ?? null) : encodeCursor(keyOf(first)),
  };
}

export type Order = 'asc' | 'desc';

type Key = readonly [column: string, value: unknown];

/** The sort key of a row: its values in the one or two columns of the order. */
export type Place = readonly [Key] | readonly [Key, Key];

/** The place where a page of a list by one column begins. Undefined for the first page. */
export function startOf({ cursor }: Pick<PageRequest, 'cursor'>, column: string, form?: RegExp): Place | undefined {
  const key = decodeCursor(cursor, form);
  return key === undefined ? undefined : [[column, key]];
}

/**
 * The SQL condition for the rows behind a place, appended to another condition. Empty for the first page. With two
 * columns, the bound of the first also stands by itself: from an OR alone MariaDB reads the index from the beginning of
 * the list, however deep the page is.
 */
export function behindSql(order: Order, place: Place | undefined): { sql: string; values: unknown[] } {
  if (place === undefined) return { sql: '', values: [] };
  const beyond = order === 'asc' ? '>' : '<';
  const [[first, value], second] = place;
  if (second === undefined) return { sql: `AND ${first} ${beyond} ?`, values: [value] };
  return {
    sql: `AND ${first} ${beyond}= ? AND (${first} ${beyond} ? OR ${second[0]} ${beyond} ?)`,
    values: [value, value, second[1]],
  };
}

/** The same condition for Sequelize. It can stand beside other conditions on the same columns. */
export function behind(order: Order, place: Place | undefined): WhereOptions {
  if (place === undefined) return {};
  const [bound, beyond] = order === 'asc' ? ([Op.gte, Op.gt] as const) : ([Op.lte, Op.lt] as const);
  const [[first, value], second] = place;
  const past = { [first]: { [beyond]: value } };
  if (second === undefined) return { [Op.and]: [past] };
  return { [Op.and]: [{ [first]: { [bound]: value } }, { [Op.or]: [past, { [second[0]]: { [beyond]: second[1] } }] }] };
}

/**
 * Reads a list by the index of its order. Left to choose, MariaDB may find the index not worth it for the many rows
 * behind the cursor, and then reads from the beginning of the list.
 */
export function along(index: string) {
  return { indexHints: [{ type: IndexHints.FORCE, values: [index] }] };
}

/** A list ordered by one column. */
export interface ListQuery<T> {
  /** From SELECT to the last condition. */
  sql: string;
  values: readonly unknown[];
  /** The column of the order, such as `id` or `d.id`. Rows contain it. */
  by: string;
  order: Order;
  /** The form of the list's keys, if they are more than ids. */
  cursorForm?: RegExp;
  /** Converts a row. Default: the row as it is. */
  read?: (row: RowDataPacket) => T;
}

export async function readPage<T>(
  { pool }: Pick<Database, 'pool'>,
  page: PageRequest,
  { sql, values, by, order, cursorForm, read = (row) => row as T }: ListQuery<T>,
): Promise<Page<T>> {
  const next = behindSql(order, startOf(page, by, cursorForm));
  const rows = await select(pool, `${sql} ${next.sql} ORDER BY ${by} ${order} LIMIT ?`, [
    ...values,
    ...next.values,
    page.limit + 1,
  ]);
  const key = fieldOf(by.slice(by.indexOf('.') + 1));
  const { data, nextCursor } = toPage(rows, page.limit, (row) => String(row[key]));
  return { data: data.map(read), nextCursor };
}
