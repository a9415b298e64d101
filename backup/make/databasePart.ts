import { withAccountConnection } from '../../integrations/tenantDatabases/accountConnection.ts';
import { withTenantConnection } from '../../integrations/tenantDatabases/connection.ts';
import { dumpDatabase } from '../../integrations/tenantDatabases/dump/dump.ts';
import { type Entry, linesOf } from '../../integrations/tenantDatabases/dump/entries.ts';
import { RowTooLarge, TenantServerError } from '../../integrations/tenantDatabases/errors.ts';
import { BackupError } from '../errors.ts';
import type { Stored, Vault } from '../vault/vault.ts';

/** Of the product's own rows. Several columns of 16 MB are in some. */
const mostRowBytes = 64 * 1_048_576;

/**
 * All of the product's database, as it is at one moment: what spaces' databases are dumped with does for it too, on MySQL
 * and MariaDB, without a program of either. `url` is of an account that sees triggers.
 */
export async function storeDatabase(
  vault: Vault,
  url: string,
  signal: AbortSignal,
): Promise<{ content: Stored; server: string }> {
  const name = new URL(url).pathname.slice(1);
  try {
    return await withTenantConnection({ url, adminPort: undefined }, async (admin) => ({
      content: await withAccountConnection({ uri: url }, signal, (connection) =>
        vault.store(linesOf(withoutName(dumpDatabase(connection, admin, name, mostRowBytes)))),
      ),
      server: `${admin.isMariaDb ? '' : 'MySQL '}${admin.version}`,
    }));
  } catch (error) {
    if (error instanceof RowTooLarge) {
      throw new BackupError(`The table ${error.table} has a row of more than ${error.maxBytes} bytes.`);
    }
    if (!(error instanceof TenantServerError)) throw error;
    throw new BackupError(`The product's database cannot be read: ${error.code ?? 'unknown'} (${error.errno ?? '–'}).`);
  }
}

/** What is put into the database that is there has no need of another's name and settings. */
async function* withoutName(entries: AsyncIterable<Entry>): AsyncGenerator<Entry> {
  for await (const entry of entries)
    if (!('define' in entry) || !entry.define.startsWith('ALTER DATABASE ')) yield entry;
}
