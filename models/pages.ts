import { DomainError } from './errors.ts';

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

/** Makes a page of rows that were read with `limit + 1`: the one too many says whether there is more. */
export function toPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string): Page<T> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  return { data, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(keyOf(last)) : null };
}
