import type { Envelope } from '../../crypto/envelope.ts';
import { DecryptionError } from '../../crypto/errors.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/**
 * The purposes of Atrium's own accounts. Both are read-only: `reader` for queries of agents, and `keeper` for backups,
 * without a time limit.
 */
export type AccountPurpose = 'reader' | 'keeper';

export const purposes: readonly AccountPurpose[] = ['reader', 'keeper'];

/** An account with access to a space's database. */
export interface DatabaseAccount {
  id: string;
  databaseId: string;
  spaceId: string;
  /** The account's name on the server. */
  serverUser: string;
  sealed: Buffer;
  /** The previous password, and until when it is valid. */
  previousSealed: Buffer | null;
  previousUntil: Date | null;
  /** Incremented with each new password. */
  passwordVersion: number;
  /** The `passwordVersion` that the server is known to have. */
  setVersion: number;
  /** The app whose runs use the account. Null for the space's own account. */
  appId: string | null;
  itemId: string | null;
  /** Set when the account was revoked. */
  revokedAt: Date | null;
  /** True if its open connections are to be cut once. */
  isCut: boolean;
  /** Null for the accounts of the space and of its apps. */
  purpose: AccountPurpose | null;
}

const columns = `id, database_id, space_id, server_user, sealed, previous_sealed, previous_until, password_version,
  set_version, app_id, item_id, revoked_at, is_cut, purpose`;

/** The accounts of a database: the space's own, those of its apps, and Atrium's. */
export async function accountsOf({ pool }: Pick<Database, 'pool'>, databaseId: string): Promise<DatabaseAccount[]> {
  const sql = `SELECT ${columns} FROM space_database_accounts WHERE database_id = ? ORDER BY id`;
  return select<DatabaseAccount>(pool, sql, [databaseId]);
}

/**
 * Atrium's account for a purpose, or the space's own. The id of the space's own need not be the lowest: several
 * processes may make ids in one millisecond.
 */
export async function ownAccountOf(
  { pool }: Pick<Database, 'pool'>,
  databaseId: string,
  purpose: AccountPurpose | null = null,
): Promise<DatabaseAccount | undefined> {
  const sql = `SELECT ${columns} FROM space_database_accounts WHERE database_id = ? AND app_id IS NULL AND purpose <=> ?`;
  const [row] = await select<DatabaseAccount>(pool, sql, [databaseId, purpose]);
  return row;
}

export async function sealPassword(
  envelope: Envelope,
  { id, spaceId }: Pick<DatabaseAccount, 'id' | 'spaceId'>,
  password: string,
): Promise<Buffer> {
  await keepOutOfLogs([password]);
  return envelope.seal(spaceId, sealedContext(id), Buffer.from(password, 'utf8'));
}

export async function openPassword(
  envelope: Envelope,
  { id, spaceId }: Pick<DatabaseAccount, 'id' | 'spaceId'>,
  sealed: Buffer,
): Promise<string> {
  const password = (await envelope.open(spaceId, sealedContext(id), sealed)).toString('utf8');
  await keepOutOfLogs([password]);
  return password;
}

function sealedContext(id: string): string {
  return `space_database_accounts/${id}`;
}

/** The id of the account that an app has, or had, in a database. */
export async function findAccountOf(
  { pool }: Pick<Database, 'pool'>,
  { databaseId, appId }: { databaseId: string; appId: string },
): Promise<string | undefined> {
  const sql = 'SELECT id FROM space_database_accounts WHERE app_id = ? AND database_id = ?';
  const rows = await select(pool, sql, [appId, databaseId]);
  return rows[0] && String(rows[0].id);
}

/** Maps the server's account names to their spaces. */
export async function spacesOf(
  { pool }: Pick<Database, 'pool'>,
  users: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const sql = 'SELECT server_user AS user, space_id FROM space_database_accounts WHERE server_user IN (?)';
  const rows = await select(pool, sql, [users]);
  return new Map(rows.map(({ user, spaceId }) => [String(user), String(spaceId)]));
}

/** All current and previous passwords of a space's accounts. They must not be shown to anyone. */
export async function passwordsIn(
  { pool }: Pick<Database, 'pool'>,
  envelope: Envelope,
  spaceId: string,
): Promise<string[]> {
  const sql = `SELECT ${columns} FROM space_database_accounts WHERE space_id = ?`;
  const rows = await select<DatabaseAccount>(pool, sql, [spaceId]);
  const opened = rows.flatMap((account) =>
    [account.sealed, account.previousSealed]
      .filter((one) => one !== null)
      .map((one) => openPassword(envelope, account, one).catch(unusable)),
  );
  return (await Promise.all(opened)).filter((password) => password !== undefined);
}

/** A row that was tampered with must not stop all other work. */
function unusable(error: unknown): undefined {
  if (!(error instanceof DecryptionError)) throw error;
}
