import { DomainError } from '../../base/errors.ts';

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
