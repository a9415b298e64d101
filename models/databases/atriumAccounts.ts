import { newId } from '../../base/ids.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert } from '../database/sql.ts';
import { type AccountPurpose, accountsOf, openPassword, ownAccountOf, purposes, sealPassword } from './accounts.ts';
import { newName, newPassword } from './names.ts';
import { lockDatabase } from './spaceDatabase.ts';

/** Adds Atrium's missing read accounts to a living database. */
export async function giveAtriumAccounts(
  database: Database,
  envelope: Envelope,
  names: { user: string; keeper: string },
  databaseId: string,
): Promise<void> {
  const missing = missingOf(await accountsOf(database, databaseId));
  if (missing.length === 0) return;
  const found = await transaction(database, (tx) => lockDatabase(tx, databaseId));
  if (found?.state !== 'living') return;
  const { spaceId } = found;
  for (const purpose of missing) {
    const account = { id: newId('databaseAccount'), spaceId };
    const sealed = await sealPassword(envelope, account, newPassword());
    await transaction(database, async (tx) => {
      const locked = await lockDatabase(tx, databaseId);
      if (locked?.state !== 'living') return;
      const known = await accountsOf(database, databaseId);
      if (!missingOf(known).includes(purpose)) return;
      const user = newName(purpose === 'keeper' ? names.keeper : names.user);
      const row = { id: account.id, databaseId, spaceId, serverUser: user, sealed, purpose };
      await insert(tx, 'space_database_accounts', row);
    });
  }
}

function missingOf(accounts: readonly { purpose: AccountPurpose | null }[]): AccountPurpose[] {
  return purposes.filter((purpose) => !accounts.some((account) => account.purpose === purpose));
}

/** Opens Atrium's account for a purpose, or the space's own. Undefined while the server does not have its password. */
export async function readAccount(
  database: Database,
  envelope: Envelope,
  databaseId: string,
  purpose: AccountPurpose | null,
): Promise<{ user: string; password: string } | undefined> {
  const account = await ownAccountOf(database, databaseId, purpose);
  if (account === undefined || account.setVersion !== account.passwordVersion) return undefined;
  return { user: account.serverUser, password: await openPassword(envelope, account, account.sealed) };
}
