import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';
import { databaseName } from './names.ts';
import type { DatabaseSize } from './types.ts';

const compactTimeoutMs = 8 * 60_000;

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
  return new Map(rows.map(({ name, bytes, tables }) => [name, { bytes: Number(bytes), tables: Number(tables) }]));
}

/** Writes the tables of a database anew. One that is in use for long, or has gone, is left as it is. */
export async function compactDatabase(connection: TenantConnection, name: string): Promise<void> {
  const tables = await connection.rows<{ name: string }>(
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'",
    [name],
  );
  for (const { name: table } of tables) {
    const quoted = `${databaseName(name)}.\`${table.replaceAll('`', '``')}\``;
    await connection.run(`OPTIMIZE TABLE ${quoted}`, [], { timeoutMs: compactTimeoutMs }).catch((error: unknown) => {
      if (!(error instanceof TenantServerError) || !leftAlone.has(error.errno)) throw error;
    });
  }
}

const [lockWaitTimedOut, noSuchTable, deadlock] = [1205, 1146, 1213];
const leftAlone: ReadonlySet<number | undefined> = new Set([lockWaitTimedOut, noSuchTable, deadlock]);
