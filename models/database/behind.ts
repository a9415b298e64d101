import { IndexHints, Op, type WhereOptions } from 'sequelize';

/**
 * The rows behind a cursor of two columns, for a list in that order. Written out with the first column's bound by
 * itself: from an OR alone MariaDB reads the index from the beginning of the list, however deep the page is.
 */
export function behind(
  direction: 'ascending' | 'descending',
  cursor: [[string, unknown], [string, unknown]],
): WhereOptions {
  const [[first, firstValue], [second, secondValue]] = cursor;
  const [bound, beyond] = direction === 'ascending' ? ([Op.gte, Op.gt] as const) : ([Op.lte, Op.lt] as const);
  return {
    [Op.and]: [
      { [first]: { [bound]: firstValue } },
      { [Op.or]: [{ [first]: { [beyond]: firstValue } }, { [second]: { [beyond]: secondValue } }] },
    ],
  };
}

/**
 * Reads a list by the index of its order. Left to choose, MariaDB may think that the many rows behind the cursor are not
 * worth their index, and then reads it from the beginning of the list.
 */
export function along(index: string) {
  return { indexHints: [{ type: IndexHints.FORCE, values: [index] }] };
}
