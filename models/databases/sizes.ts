import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { lockDatabase } from './spaceDatabase.ts';

export interface SizeLimits {
  maxBytes: number;
  maxTables: number;
  /** True if the server's disk has no room for more data of any space. */
  isDiskFull: boolean;
  /** The part of each size that is not tables. */
  defined?: ReadonlyMap<string, Measured>;
}

/** The values of `is_full`. */
const [hasRoom, full, fullOfDefinitions] = [0, 1, 2];

interface Measured {
  bytes: number;
  tables: number;
}

interface Known {
  id: string;
  spaceId: string;
  serverName: string;
  sizeBytes: number | string;
  tableCount: number;
  isFull: number;
}

const rowsAtOnce = 500;
const nothing: Measured = { bytes: 0, tables: 0 };

/**
 * Records the sizes of databases, by their names on the server. Returns those that have become full, or are no longer
 * full, so that the server can follow.
 */
export async function recordSizes(
  database: Database,
  sizes: ReadonlyMap<string, Measured>,
  limits: SizeLimits,
): Promise<{ id: string; spaceId: string }[]> {
  const changed: { id: string; spaceId: string }[] = [];
  for (let after = ''; ; ) {
    const sql = `SELECT id, space_id, server_name, size_bytes, table_count, is_full
         FROM space_databases FORCE INDEX (space_databases_state)
        WHERE state = 'living' AND is_made = 1 AND id > ? ORDER BY id LIMIT ${rowsAtOnce}`;
    const known = await select<Known>(database.pool, sql, [after]);
    after = known.at(-1)?.id ?? '';
    if (after === '') return changed;
    for (const one of known) {
      const size = sizes.get(one.serverName) ?? nothing;
      if (await record(database, one, size, limits)) changed.push({ id: one.id, spaceId: one.spaceId });
    }
  }
}

async function record(database: Database, known: Known, { bytes, tables }: Measured, limits: SizeLimits) {
  const isTooLarge = (size: Measured) => size.bytes > limits.maxBytes || size.tables > limits.maxTables;
  const level = limits.isDiskFull || isTooLarge({ bytes, tables }) ? full : hasRoom;
  const isFull = isTooLarge(limits.defined?.get(known.serverName) ?? nothing) ? fullOfDefinitions : level;
  const isSame = Number(known.sizeBytes) === bytes && known.tableCount === tables;
  if (!isSame) {
    const sql = 'UPDATE space_databases SET size_bytes = ?, table_count = ? WHERE id = ?';
    await execute(database.pool, sql, [bytes, tables, known.id]);
  }
  if (isFull === Number(known.isFull)) return false;
  return transaction(database, async (tx) => {
    const row = await lockDatabase(tx, known.id);
    if (row?.state !== 'living') return false;
    const sql = 'UPDATE space_databases SET is_full = ?, version = version + 1, due_at = ? WHERE id = ?';
    await execute(tx, sql, [isFull, new Date(), known.id]);
    // Open connections keep the rights with which they began, so they are cut. Atrium's own only read: a backup goes
    // on.
    const cut = 'UPDATE space_database_accounts SET is_cut = 1 WHERE database_id = ? AND purpose IS NULL';
    await execute(tx, cut, [known.id]);
    return true;
  });
}
