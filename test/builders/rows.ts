import { type Database, transaction } from '../../models/database/database.ts';
import { insert } from '../../models/database/sql.ts';

/** Inserts one row into each of these tables. */
export async function insertRows(database: Database, rows: Record<string, Record<string, unknown>>): Promise<void> {
  await transaction(database, async (tx) => {
    for (const [table, row] of Object.entries(rows)) await insert(tx, table, row);
  });
}
