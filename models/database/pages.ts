import type { RowDataPacket } from 'mysql2';
import { IndexHints, Op, type WhereOptions } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Database } from './database.ts';

/** Which part of a list is wanted. */
export interface PageRequest {
  /** From 1 to 200; the contract checks it. */
  limit: number;
  /** The previous page's `nextCursor`. */
  cursor?: string | undefined;
}

export interface Page<T> {
  data: T[];
  /** Null when this was the last page. */
  nextCursor: string | null;
}

/**
 * The key after which the page begins, or undefined for the first page. Cursors are opaque to clients, so that the
 * order of a list can change without breaking one. A list whose keys are more than ids says what they look like.
 */
export function decodeCursor(cursor: string | undefined, pattern = /^/): string | undefined {
  if (cursor === undefined) return undefined;
  const key = Buffer.from(cursor, 'base64url').toString('utf8');
  if (key === '' || encodeCursor(key) !== cursor || !pattern.test(key)) throw invalidCursor();
  return key;
}

export function invalidCursor(): DomainError {
  return new DomainError('invalid', 'INVALID_CURSOR', 'The cursor is not one that this list has given.', {
    errors: [{ pointer: 'cursor', detail: 'is not a cursor of this list' }],
  });
}

export function encodeCursor(key: string): string {
  return Buffer.from(key, 'utf8').toString('base64url');
}

/** A page of a list that is read in either order. */
export interface TwoWayPage<T> extends Page<T> {
  /** The place of its first row: with the other order, it leads to what is before the page. Null for an empty list. */
  previousCursor: string | null;
}

/** Makes a page of rows that were read with `limit + 1`: the one too many says whether there is more. */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string): Page<T> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  return { data, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(keyOf(last)) : null };
}

/**
 * The same for a list that is read in either order; `hasMore` where the rows are not one too many. An empty page is at
 * the place that was asked for.
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

/** The place at which a page of a list by one column begins; undefined for the first page. */
export function startOf({ cursor }: Pick<PageRequest, 'cursor'>, column: string, form?: RegExp): Place | undefined {
  const key = decodeCursor(cursor, form);
  return key === undefined ? undefined : [[column, key]];
}

/**
 * The condition for the rows behind a place, in SQL that follows another condition; empty for the first page. With two
 * columns, the bound of the first stands by itself as well: from an OR alone MariaDB reads the index from the beginning
 * of the list, however deep the page is.
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

/** The same condition for Sequelize. It stands beside other conditions, also of the same columns. */
export function behind(order: Order, place: Place | undefined): WhereOptions {
  if (place === undefined) return {};
  const [bound, beyond] = order === 'asc' ? ([Op.gte, Op.gt] as const) : ([Op.lte, Op.lt] as const);
  const [[first, value], second] = place;
  const past = { [first]: { [beyond]: value } };
  if (second === undefined) return { [Op.and]: [past] };
  return { [Op.and]: [{ [first]: { [bound]: value } }, { [Op.or]: [past, { [second[0]]: { [beyond]: second[1] } }] }] };
}

/**
 * Reads a list by the index of its order. Left to choose, MariaDB may think that the many rows behind the cursor are not
 * worth their index, and then reads it from the beginning of the list.
 */
export function along(index: string) {
  return { indexHints: [{ type: IndexHints.FORCE, values: [index] }] };
}

/** A list in the order of one column. */
export interface ListQuery<T> {
  /** From SELECT to the last condition. */
  sql: string;
  values: readonly unknown[];
  /** The column of the order, such as `id` or `d.id`. Rows have it under its own name. */
  by: string;
  order: Order;
  /** How the keys of the list look, where they are more than ids. */
  cursorForm?: RegExp;
  /** What a row says; without it, the row as it is. */
  read?: (row: RowDataPacket) => T;
}

/** Reads a page of a list. */
export async function readPage<T>(
  { pool }: Pick<Database, 'pool'>,
  page: PageRequest,
  { sql, values, by, order, cursorForm, read = (row) => row as T }: ListQuery<T>,
): Promise<Page<T>> {
  const next = behindSql(order, startOf(page, by, cursorForm));
  const [rows] = await pool.query<RowDataPacket[]>(`${sql} ${next.sql} ORDER BY ${by} ${order} LIMIT ?`, [
    ...values,
    ...next.values,
    page.limit + 1,
  ]);
  const key = by.slice(by.indexOf('.') + 1);
  const { data, nextCursor } = toPage(rows, page.limit, (row) => String(row[key]));
  return { data: data.map(read), nextCursor };
}
