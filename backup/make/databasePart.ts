import { withAccountConnection } from '../../integrations/databases/accountConnection.ts';
import { type TenantConnection, withTenantConnection } from '../../integrations/databases/connection.ts';
import { dumpDatabase } from '../../integrations/databases/dump/dump.ts';
import { type Entry, linesOf } from '../../integrations/databases/dump/entries.ts';
import { RowTooLarge, TenantServerError } from '../../integrations/databases/errors.ts';
import { BackupError } from '../errors.ts';
import type { Pace } from '../pace.ts';
import type { Stored, Vault } from '../vault/vault.ts';

/** Limit for a row of the product's database. Some have several columns of 16 MB. */
const mostRowBytes = 64 * 1_048_576;

/**
 * Stores the product's whole database as of one moment. Uses the dump that also serves the databases of spaces, so it
 * works on MySQL and MariaDB without their programs. The account of `url` must see triggers.
 */
export async function storeDatabase(
  { vault, pace, signal }: { vault: Vault; pace: Pace; signal: AbortSignal },
  url: string,
): Promise<{ content: Stored; server: string }> {
  const name = new URL(url).pathname.slice(1);
  try {
    return await withTenantConnection({ url, adminPort: undefined }, async (admin) => {
      const onRow = followTables(await tableSizes(admin, name), pace);
      const content = await withAccountConnection({ uri: url }, signal, (connection) =>
        vault.store(linesOf(withoutName(dumpDatabase(connection, admin, name, { mostRowBytes, onRow })))),
      );
      pace.end();
      return { content, server: `${admin.isMariaDb ? '' : 'MySQL '}${admin.version}` };
    });
  } catch (error) {
    if (error instanceof RowTooLarge) {
      throw new BackupError(`The table ${error.table} has a row of more than ${error.maxBytes} bytes.`);
    }
    if (!(error instanceof TenantServerError)) throw error;
    throw new BackupError(`The product's database cannot be read: ${error.code ?? 'unknown'} (${error.errno ?? '–'}).`);
  }
}

interface TableSize {
  name: string;
  rows: number;
  bytes: number;
}

/** Sizes as the server estimates them. */
async function tableSizes(admin: TenantConnection, name: string): Promise<TableSize[]> {
  const tables = await admin.rows<{ name: string; count: number | null; bytes: number | null }>(
    `SELECT TABLE_NAME AS name, TABLE_ROWS AS count, DATA_LENGTH AS bytes FROM information_schema.TABLES
      WHERE TABLE_SCHEMA = ?`,
    [name],
  );
  return tables.map((table) => ({ name: table.name, rows: Number(table.count ?? 0), bytes: Number(table.bytes ?? 0) }));
}

/** Counts a row as its share of its table, and a finished table as all of it. */
function followTables(sizes: readonly TableSize[], pace: Pace): (table: string) => void {
  const sizeOf = new Map(sizes.map((size) => [size.name, size]));
  pace.begin(
    'Database',
    sizes.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  let current: TableSize | undefined;
  let [before, rows] = [0, 0];
  return (table) => {
    if (table !== current?.name) {
      before += current?.bytes ?? 0;
      [current, rows] = [sizeOf.get(table), 0];
    }
    rows += 1;
    const { rows: all, bytes } = current ?? { rows: 1, bytes: 0 };
    pace.reach(before + bytes * Math.min(1, rows / Math.max(1, all)));
  };
}

/** Omits the database's own name and settings, since the dump is restored into an existing database. */
async function* withoutName(entries: AsyncIterable<Entry>): AsyncGenerator<Entry> {
  for await (const entry of entries)
    if (!('define' in entry) || !entry.define.startsWith('ALTER DATABASE ')) yield entry;
}
