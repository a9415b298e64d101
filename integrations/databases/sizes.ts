import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { databaseName } from './names.ts';
import type { DatabaseSize } from './types.ts';

/** For one table, and for all of them: what takes longer is left as it is. */
const [tableMs, allTablesMs] = [8 * 60_000, 30 * 60_000];

/** The files of the databases whose names begin so. What has no table has none. */
export async function measureDatabases(
  connection: TenantConnection,
  prefix: string,
): Promise<Map<string, DatabaseSize>> {
  const table = connection.isMariaDb ? 'INNODB_SYS_TABLESPACES' : 'INNODB_TABLESPACES';
  const rows = await connection.rows<{ name: string; bytes: string | number; tables: string | number }>(
    `SELECT SUBSTRING_INDEX(NAME, '/', 1) AS name, SUM(FILE_SIZE) AS bytes, COUNT(*) AS tables
       FROM information_schema.${table} WHERE NAME LIKE ? GROUP BY 1`,
    [`${prefix}%/%`],
  );
  const own = new Map(rows.map(({ name, bytes, tables }) => [name, { bytes: Number(bytes), tables: Number(tables) }]));
  return connection.isMariaDb ? own : addSizes(own, await sharedFilesOf(connection, prefix));
}

/** More than any database may take. */
const tooMuch = 2 ** 42;

/**
 * On MySQL a table can ask for a place in the files of the server, which are everybody's, never get smaller, and do not
 * tell what of them is whose: whoever has one there has too much.
 */
async function sharedFilesOf(connection: TenantConnection, prefix: string): Promise<Map<string, DatabaseSize>> {
  const rows = await connection.rows<{ name: string; tables: number }>(
    `SELECT SUBSTRING_INDEX(NAME, '/', 1) AS name, COUNT(*) AS tables FROM information_schema.INNODB_TABLES
      WHERE SPACE_TYPE <> 'Single' AND NAME LIKE ? GROUP BY 1`,
    [`${prefix}%/%`],
  );
  return new Map(rows.map(({ name, tables }) => [name, { bytes: tooMuch, tables: Number(tables) }]));
}

/** Both together. */
export function addSizes(
  one: ReadonlyMap<string, DatabaseSize>,
  other: ReadonlyMap<string, DatabaseSize>,
): Map<string, DatabaseSize> {
  const sum = new Map(one);
  for (const [name, { bytes, tables }] of other) {
    const { bytes: before, tables: tablesBefore } = sum.get(name) ?? { bytes: 0, tables: 0 };
    sum.set(name, { bytes: before + bytes, tables: tablesBefore + tables });
  }
  return sum;
}

interface CompactOptions {
  eachMs?: number;
  allMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Writes the tables of a database anew. One that is in use for long, or has gone, or takes long, is left as it is, and
 * so are all that are left when the signal is aborted.
 */
export async function compactDatabase(
  connection: TenantConnection,
  name: string,
  { eachMs = tableMs, allMs = allTablesMs, signal }: CompactOptions = {},
): Promise<void> {
  const deadline = performance.now() + allMs;
  const tables = await connection.rows<{ name: string }>(
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'",
    [name],
  );
  for (const { name: table } of tables) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || signal?.aborted) return;
    const quoted = `${databaseName(name)}.\`${table.replaceAll('`', '``')}\``;
    await connection.runFor(`OPTIMIZE TABLE ${quoted}`, Math.min(eachMs, leftMs), signal).catch((error: unknown) => {
      if (!(error instanceof TenantServerError) || !leftAlone.has(error.errno)) throw error;
    });
  }
}

const [lockWaitTimedOut, noSuchTable, deadlock, interrupted] = [1205, 1146, 1213, 1317];
const leftAlone: ReadonlySet<number | undefined> = new Set([lockWaitTimedOut, noSuchTable, deadlock, interrupted]);
