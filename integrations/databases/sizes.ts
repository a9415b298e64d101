import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { databaseName } from './names.ts';
import type { DatabaseSize } from './types.ts';

/** Limits for one table, and for all tables. A table that takes longer stays as it is. */
const [tableMs, allTablesMs] = [8 * 60_000, 30 * 60_000];

/** Limits for opening the tables of one database, and of all in one look. Tenants can hold locks on their tables. */
const [openMs, openAllMs] = [2_000, 5_000];

type Sizes = ReadonlyMap<string, DatabaseSize>;

/** The file sizes of databases. A database without tables has no files. */
export class FileSizes {
  /** The number of tables of each database that had no files after they had last been opened, if not zero. */
  readonly #closed = new Map<string, number>();

  /**
   * The sizes of the databases whose names begin with `prefix`. MariaDB lists the files of a table only once the table
   * was opened since its start. So tables that have none yet are opened, once: a table that a tenant has cut off from
   * its file stays without.
   */
  async look(connection: TenantConnection, prefix: string): Promise<Sizes> {
    const files = await ownFilesOf(connection, prefix);
    if (!connection.isMariaDb) return addSizes(files, await sharedFilesOf(connection, prefix));
    const tables = await tablesOf(connection, prefix);
    const closedIn = (seen: Sizes, name: string) => (tables.get(name) ?? 0) - (seen.get(name)?.tables ?? 0);
    const unopened = [...tables.keys()].filter((name) => closedIn(files, name) !== (this.#closed.get(name) ?? 0));
    if (unopened.length === 0) return files;
    const deadlineMs = performance.now() + openAllMs;
    const tried: string[] = [];
    for (const name of unopened) {
      if (performance.now() > deadlineMs) break;
      await openTables(connection, name);
      tried.push(name);
    }
    const now = await ownFilesOf(connection, prefix);
    for (const name of tried) {
      const closed = closedIn(now, name);
      if (closed === 0) this.#closed.delete(name);
      else this.#closed.set(name, closed);
    }
    return now;
  }
}

async function ownFilesOf(connection: TenantConnection, prefix: string): Promise<Map<string, DatabaseSize>> {
  const table = connection.isMariaDb ? 'INNODB_SYS_TABLESPACES' : 'INNODB_TABLESPACES';
  const rows = await connection.rows<{ name: string; bytes: string | number; tables: string | number }>(
    `SELECT SUBSTRING_INDEX(NAME, '/', 1) AS name, SUM(FILE_SIZE) AS bytes, COUNT(*) AS tables
       FROM information_schema.${table} WHERE NAME LIKE ? GROUP BY 1`,
    [`${prefix}%/%`],
  );
  return new Map(rows.map(({ name, bytes, tables }) => [name, { bytes: Number(bytes), tables: Number(tables) }]));
}

/** How many tables with files of their own each database has, by MariaDB's dictionary. */
async function tablesOf(connection: TenantConnection, prefix: string): Promise<ReadonlyMap<string, number>> {
  const rows = await connection.rows<{ name: string; tables: number }>(
    `SELECT SUBSTRING_INDEX(NAME, '/', 1) AS name, COUNT(*) AS tables FROM information_schema.INNODB_SYS_TABLES
      WHERE SPACE <> 0 AND NAME LIKE ? GROUP BY 1`,
    [`${prefix}%/%`],
  );
  return new Map(rows.map(({ name, tables }) => [name, Number(tables)]));
}

/** Opens the tables of a database by reading their lengths. What is locked for longer stays closed. */
async function openTables(connection: TenantConnection, name: string): Promise<void> {
  const sql = `SET STATEMENT max_statement_time = ${openMs / 1_000} FOR
    SELECT COUNT(DATA_LENGTH) AS n FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?`;
  await connection.rows(sql, [name]).catch((error: unknown) => {
    if (!(error instanceof TenantServerError)) throw error;
  });
}

/** More than the limit of any database. */
const tooMuch = 2 ** 42;

/**
 * On MySQL a table can ask for a place in the server's shared files. These never shrink, and do not tell whose data is
 * in them. So a database with such a table counts as too large.
 */
async function sharedFilesOf(connection: TenantConnection, prefix: string): Promise<Map<string, DatabaseSize>> {
  const rows = await connection.rows<{ name: string; tables: number }>(
    `SELECT SUBSTRING_INDEX(NAME, '/', 1) AS name, COUNT(*) AS tables FROM information_schema.INNODB_TABLES
      WHERE SPACE_TYPE <> 'Single' AND NAME LIKE ? GROUP BY 1`,
    [`${prefix}%/%`],
  );
  return new Map(rows.map(({ name, tables }) => [name, { bytes: tooMuch, tables: Number(tables) }]));
}

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

/**
 * Rewrites the tables of a database. A table that is busy, gone, or takes too long stays as it is, and so do the
 * remaining ones when the signal aborts.
 */
export async function compactDatabase(
  connection: TenantConnection,
  name: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const deadline = performance.now() + allTablesMs;
  const tables = await connection.rows<{ name: string }>(
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'",
    [name],
  );
  for (const { name: table } of tables) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || signal?.aborted) return;
    const quoted = `${databaseName(name)}.\`${table.replaceAll('`', '``')}\``;
    await connection.runFor(`OPTIMIZE TABLE ${quoted}`, Math.min(tableMs, leftMs), signal).catch((error: unknown) => {
      if (!(error instanceof TenantServerError) || !leftAlone.has(error.errno)) throw error;
    });
  }
}

const [lockWaitTimedOut, noSuchTable, deadlock, interrupted] = [1205, 1146, 1213, 1317];
const leftAlone: ReadonlySet<number | undefined> = new Set([lockWaitTimedOut, noSuchTable, deadlock, interrupted]);
