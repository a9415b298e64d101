import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

const atOnce = 1_000;

/** An object that a row may refer to. */
export interface BackedUpObject {
  key: string;
  spaceId: string;
  bytes: number;
  /** No row refers to it any more, so the store may not have it. */
  isDoomed: boolean;
}

type Row = Omit<BackedUpObject, 'isDoomed'> & { isDoomed: number };

/**
 * All objects except arriving ones, ordered by key. If this is read after the moment of the backup, and nothing is
 * removed meanwhile, it includes every object that the backup's rows refer to. An object that was given up since then
 * still has its row.
 */
export async function* objectsForBackup({ pool }: Pick<Database, 'pool'>): AsyncGenerator<BackedUpObject> {
  const sql = `SELECT object_key AS \`key\`, space_id, size AS bytes, state = 'doomed' AS isDoomed
    FROM drive_objects WHERE object_key > ? AND state <> 'arriving' ORDER BY object_key LIMIT ${atOnce}`;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: Row[] = await select<Row>(pool, sql, [after]);
    for (const row of rows) yield { ...row, bytes: Number(row.bytes), isDoomed: row.isDoomed === 1 };
    after = rows.length < atOnce ? undefined : rows.at(-1)?.key;
  }
}

/** The number of those objects, and their total bytes. */
export async function countObjectsForBackup({ pool }: Pick<Database, 'pool'>) {
  const sql = "SELECT COUNT(*) AS count, COALESCE(SUM(size), 0) AS bytes FROM drive_objects WHERE state <> 'arriving'";
  const rows = await select(pool, sql);
  return { count: Number(rows[0]?.count), bytes: Number(rows[0]?.bytes) };
}
