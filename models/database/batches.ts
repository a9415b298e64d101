import type { Database } from './database.ts';
import { execute, select } from './sql.ts';

const rowsPerStatement = 1_000;

/**
 * Repeats a DELETE until no rows are left, and returns how many were deleted. Its last placeholder is its LIMIT. Each
 * batch commits by itself, so that locks are held briefly.
 */
export async function deleteInBatches(
  { pool }: Pick<Database, 'pool'>,
  statement: string,
  values: unknown[],
  onBatch: () => void = () => undefined,
): Promise<number> {
  for (let deleted = 0; ; ) {
    const { affectedRows } = await execute(pool, statement, [...values, rowsPerStatement]);
    deleted += affectedRows;
    onBatch();
    if (affectedRows < rowsPerStatement) return deleted;
  }
}

/** Deletes rows whose ids a SELECT finds. The SELECT's last placeholder is its LIMIT. */
export function deleteByIds(
  { pool }: Pick<Database, 'pool'>,
  table: string,
  select: string,
  values: unknown[],
  onBatch?: () => void,
): Promise<number> {
  const remove = async (ids: readonly string[]) => {
    const { affectedRows } = await execute(pool, `DELETE FROM ${table} WHERE id IN (?)`, [ids]);
    return affectedRows;
  };
  return removeByIds({ pool }, { select, values, remove }, onBatch);
}

/** Like `deleteByIds`, with an own `remove` that returns how many rows it has removed. It may leave some. */
export async function removeByIds(
  { pool }: Pick<Database, 'pool'>,
  rows: {
    select: string;
    values: unknown[];
    remove(ids: readonly string[]): Promise<number>;
    atOnce?: number;
  },
  onBatch: () => void = () => undefined,
): Promise<number> {
  const { values, remove, atOnce = rowsPerStatement } = rows;
  for (let removed = 0; ; ) {
    const found = await select(pool, rows.select, [...values, atOnce]);
    if (found.length > 0) removed += await remove(found.map(({ id }) => String(id)));
    onBatch();
    if (found.length < atOnce) return removed;
  }
}
