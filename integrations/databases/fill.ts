import { withAccountConnection } from './accountConnection.ts';
import { alignDatabase, remove } from './align.ts';
import type { TenantConnection } from './connection.ts';
import { entriesOf } from './dump/entries.ts';
import { restoreDatabase } from './dump/restore.ts';
import { mayPass, RestoreRefused, TenantServerError } from './errors.ts';
import type { AccountLimits, Fill, WantedDatabase } from './types.ts';

interface Server {
  connection: TenantConnection;
  place: { host: string; port: number };
  limits: AccountLimits;
}

/**
 * Makes a database from a dump, and removes the remains of an earlier attempt. Nobody can connect yet. Throws {@link
 * RestoreRefused} if the dump can never be restored, and {@link TenantServerError}.
 */
export async function fillDatabase(
  { connection, place, limits }: Server,
  before: WantedDatabase,
  { user, begin, read, signal, leftOut }: Fill,
): Promise<void> {
  await remove(connection, before);
  const database = { ...before, name: await begin() };
  await alignDatabase(connection, database, limits);
  const account = database.accounts.find((one) => one.user === user);
  if (account === undefined) throw new TenantServerError({ code: 'NO_SUCH_ACCOUNT' });
  // As the tenant and never as Atrium, because the tenant decided what is in the backup.
  const details = { ...place, user, password: account.password, database: database.name };
  await withAccountConnection(details, signal, (tenant) =>
    read((bytes) =>
      restoreDatabase(tenant, entriesOf(bytes), { name: database.name, isMariaDb: connection.isMariaDb, leftOut }),
    ),
  ).catch((error: unknown) => {
    if (!(error instanceof TenantServerError) || mayPass(error)) throw error;
    throw new RestoreRefused(error.message);
  });
}
