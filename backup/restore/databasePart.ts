import { type AccountConnection, withAccountConnection } from '../../integrations/databases/accountConnection.ts';
import { withTenantConnection } from '../../integrations/databases/connection.ts';
import { entriesOf } from '../../integrations/databases/dump/entries.ts';
import { restoreDatabase } from '../../integrations/databases/dump/restore.ts';
import { quote } from '../../integrations/databases/dump/values.ts';
import { TenantServerError } from '../../integrations/databases/errors.ts';
import { BackupError } from '../errors.ts';
import type { Pace } from '../pace.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Vault } from '../vault/vault.ts';

/** Restores the product's whole database, and drops what an earlier attempt left. `url` is for its owner account. */
export async function loadDatabase(
  { vault, pace, signal }: { vault: Vault; pace: Pace; signal: AbortSignal },
  { database, server }: Manifest,
  url: string,
): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  try {
    await withTenantConnection({ url, adminPort: undefined }, async ({ isMariaDb, version }) => {
      if (isMariaDb !== server.includes('MariaDB')) {
        throw new BackupError(`The backup is of ${server}, and this server is ${version}: use one of the same kind.`);
      }
      await withAccountConnection({ uri: url }, signal, async (connection) => {
        await dropTables(connection);
        pace.begin('Database', database.bytes);
        await restoreDatabase(connection, entriesOf(paced(vault.read(database), pace)), { name, isMariaDb });
        pace.end();
      });
    });
  } catch (error) {
    if (!(error instanceof TenantServerError)) throw error;
    throw new BackupError(
      `The database does not take what is in the backup: ${error.code ?? 'unknown'} (${error.errno}).`,
    );
  }
}

async function* paced(bytes: AsyncIterable<Buffer>, pace: Pace): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    pace.add(chunk.length);
    yield chunk;
  }
}

export function countTables(url: string): Promise<number> {
  const signal = new AbortController().signal;
  return withAccountConnection({ uri: url }, signal, async (connection) => (await tablesOf(connection)).length);
}

async function tablesOf(connection: AccountConnection): Promise<string[]> {
  const sql = 'SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()';
  return (await connection.rows<{ name: string }>(sql)).map(({ name }) => name);
}

async function dropTables(connection: AccountConnection): Promise<void> {
  await connection.run('SET SESSION foreign_key_checks = 0');
  for (const name of await tablesOf(connection)) await connection.run(`DROP TABLE ${quote(name)}`);
}
