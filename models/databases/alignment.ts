import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type OperationEnd, operationModels } from '../operations/operation.ts';
import { accountsOf, type DatabaseAccount, openPassword } from './accounts.ts';
import { dropBackupsOf, dropIfLeft } from './backupRows.ts';
import { type LeftOut, writeLeftOut } from './leftOut.ts';
import { newName } from './names.ts';
import { type DatabaseState, lockDatabase } from './spaceDatabase.ts';

/** The state that the server should give a database now. */
export interface Alignment {
  id: string;
  version: number;
  serverName: string;
  state: DatabaseState;
  isFull: boolean;
  isFullOfDefinitions: boolean;
  /** The version that asked for its tables to be rewritten. 0 if none did. */
  compacts: number;
  /** The backup from which the database is to be made. */
  restores: string | null;
  /** What the backup left out. Set once the server was filled from it. */
  leftOut?: LeftOut;
  accounts: AlignedAccount[];
  /** When the wanted state changes next without a request, by time alone. */
  nextAt: Date | null;
}

export interface AlignedAccount {
  id: string;
  serverUser: string;
  password: string;
  previous: string | undefined;
  passwordVersion: number;
  /** True if the server may have other passwords for it. */
  setsPasswords: boolean;
  isRevoked: boolean;
  /** True if its open connections are to be cut once. */
  isCut: boolean;
  /** True for the accounts with which Atrium reads. */
  onlyReads: boolean;
  /** True for the space's own account. */
  isOwn: boolean;
}

/** The wanted state. Undefined without a row. A deleted database whose retention has passed becomes `purged`. */
export async function readAlignment(
  database: Database,
  envelope: Envelope,
  id: string,
  now = new Date(),
): Promise<Alignment | undefined> {
  const found = await transaction(database, async (tx) => {
    const row = await lockDatabase(tx, id);
    if (row?.state !== 'deleted' || row.purgeAt === null || row.purgeAt > now) return row;
    await execute(tx, "UPDATE space_databases SET state = 'purged', version = version + 1, due_at = ? WHERE id = ?", [
      now,
      id,
    ]);
    return { ...row, state: 'purged' as const, version: row.version + 1 };
  });
  if (found === undefined) return undefined;
  const { version, serverName, state, purgeAt, isFull, isFullOfDefinitions, compacts } = found;
  const restores = found.isMade ? null : found.restores;
  const rows = await accountsOf(database, id);
  // A purged database needs no passwords, and its space's keys may be gone already.
  const open: OpenSealed =
    state === 'purged' ? async () => '' : (account, sealed) => openPassword(envelope, account, sealed);
  const accounts = await Promise.all(rows.map((account) => asAligned(open, account, now)));
  const ends = rows.flatMap(({ previousUntil }) =>
    previousUntil !== null && previousUntil > now ? [previousUntil] : [],
  );
  if (state === 'deleted' && purgeAt !== null) ends.push(purgeAt);
  const nextAt = ends.length === 0 || state === 'purged' ? null : new Date(Math.min(...ends.map(Number)));
  const full = { isFull, isFullOfDefinitions };
  return { id, version, serverName, state, ...full, compacts, restores, accounts, nextAt };
}

type OpenSealed = (account: DatabaseAccount, sealed: Buffer) => Promise<string>;

async function asAligned(open: OpenSealed, account: DatabaseAccount, now: Date): Promise<AlignedAccount> {
  const { id, serverUser, sealed, previousSealed, previousUntil, passwordVersion, setVersion } = account;
  const isOver = previousUntil !== null && previousUntil <= now;
  const previous = previousSealed === null || isOver ? undefined : await open(account, previousSealed);
  const password = await open(account, sealed);
  const setsPasswords = passwordVersion !== setVersion || isOver;
  const ends = { isRevoked: account.revokedAt !== null, isCut: Boolean(account.isCut) };
  const onlyReads = account.purpose !== null;
  const isOwn = !onlyReads && account.appId === null;
  return { id, serverUser, password, previous, passwordVersion, setsPasswords, onlyReads, isOwn, ...ends };
}

/** True if aligning the database takes long, because it is filled or its tables are rewritten. */
export async function takesLong({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const sql = `SELECT 1 FROM space_databases
      WHERE id = ? AND state = 'living' AND (compacts > 0 OR (restores IS NOT NULL AND is_made = 0))`;
  const rows = await select(pool, sql, [id]);
  return rows.length > 0;
}

/**
 * Begins to make a database from a backup. Gives it a new name on the server, which no earlier attempt had, in the row
 * and in `aligned`. Throws 503 `DATABASE_TAKEN_OVER` if another worker has begun since `aligned` was read.
 */
export async function beginFill(database: Database, aligned: Alignment, prefix: string): Promise<string> {
  const serverName = newName(prefix);
  await transaction(database, async (tx) => {
    const row = await lockDatabase(tx, aligned.id);
    if (row === undefined || row.isMade || row.serverName !== aligned.serverName) throw takenOver();
    await execute(tx, 'UPDATE space_databases SET server_name = ? WHERE id = ?', [serverName, aligned.id]);
  });
  aligned.serverName = serverName;
  return serverName;
}

function takenOver(): DomainError {
  return new DomainError('unavailable', 'DATABASE_TAKEN_OVER', 'Another process is already making this database.');
}

/**
 * Records that the server matches `aligned`, and ends the operations that asked for it. False if another request came
 * meanwhile: then it is aligned again, even if another worker has done so, because it is unknown which of the two
 * states the server has. Throws 503 `DATABASE_TAKEN_OVER` if another worker makes the database.
 */
export async function finishAlignment(database: Database, aligned: Alignment): Promise<boolean> {
  return transaction(database, async (tx) => {
    const row = await lockDatabase(tx, aligned.id);
    if (row === undefined) return true;
    if (row.serverName !== aligned.serverName) throw takenOver();
    if (row.version !== aligned.version) {
      // Long work that is done is not repeated, whatever else was asked for meanwhile.
      if (aligned.restores !== null && aligned.state === 'living') await noteFilled(tx, aligned);
      if (aligned.compacts > 0 && aligned.compacts === row.compacts) {
        await execute(tx, 'UPDATE space_databases SET compacts = 0 WHERE id = ?', [aligned.id]);
      }
      const sql = 'UPDATE space_databases SET due_at = ?, version = version + 1 WHERE id = ?';
      await execute(tx, sql, [new Date(), aligned.id]);
      return false;
    }
    for (const account of aligned.accounts) await noteSet(tx, account);
    await execute(tx, 'UPDATE space_database_accounts SET is_cut = 0 WHERE database_id = ? AND is_cut = 1', [
      aligned.id,
    ]);
    // A database that was deleted before it was filled is filled when it is restored.
    if (aligned.restores === null || aligned.state !== 'deleted') await noteFilled(tx, aligned);
    const note = { dueAt: aligned.nextAt, compacts: 0 };
    await execute(tx, 'UPDATE space_databases SET ? WHERE id = ?', [note, aligned.id]);
    if (aligned.state === 'purged') await dropBackupsOf(tx, aligned.id);
    await endOperations(tx, aligned.id, { status: 'succeeded', result: { databaseId: aligned.id } });
    return true;
  });
}

/** Records that the database is filled from its backup, or gone. */
async function noteFilled(tx: Transaction, { id, restores, state, leftOut }: Alignment): Promise<void> {
  const made = { isMade: state === 'purged' ? 0 : 1, restores: null };
  const note = leftOut === undefined ? made : { ...made, leftOut: writeLeftOut(leftOut) };
  await execute(tx, 'UPDATE space_databases SET ? WHERE id = ?', [note, id]);
  if (restores !== null) await dropIfLeft(tx, restores);
}

async function noteSet(
  tx: Transaction,
  { id, passwordVersion, previous, setsPasswords }: AlignedAccount,
): Promise<void> {
  if (!setsPasswords) return;
  const forgotten = previous === undefined ? ', previous_sealed = NULL, previous_until = NULL' : '';
  await execute(tx, `UPDATE space_database_accounts SET set_version = ?${forgotten} WHERE id = ?`, [
    passwordVersion,
    id,
  ]);
}

/**
 * Fails the operations that waited at `before` for a server that cannot do it. The wanted state stays, and the sweep
 * tries again. What was asked for later is tried first.
 */
export async function giveUpAlignment(
  database: Database,
  id: string,
  failure: { code: string; detail: string },
  before = new Date(),
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockDatabase(tx, id);
    await endOperations(tx, id, { status: 'failed', ...failure }, before);
    if ((await waiting(tx, id)).length > 0) return;
    // Rewriting is not retried forever. The user can ask again.
    await execute(tx, 'UPDATE space_databases SET compacts = 0 WHERE id = ?', [id]);
  });
}

/** Purges a database that cannot be made, and fails its operations. False if another worker is making it. */
export async function failRestore(
  database: Database,
  { id, serverName }: Pick<Alignment, 'id' | 'serverName'>,
  failure: { code: string; detail: string },
): Promise<boolean> {
  const now = new Date();
  return transaction(database, async (tx) => {
    const row = await lockDatabase(tx, id);
    if (row === undefined) return true;
    if (row.isMade || row.serverName !== serverName) return false;
    await execute(
      tx,
      `UPDATE space_databases
          SET state = 'purged', live_name = NULL, restores = NULL, purge_at = ?, due_at = ?, version = version + 1
        WHERE id = ?`,
      [now, now, id],
    );
    if (row.restores !== null) await dropIfLeft(tx, row.restores);
    await endOperations(tx, id, { status: 'failed', ...failure });
    return true;
  });
}

/** The operations of a database that have not ended. */
function waiting(tx: Transaction, subjectId: string): Promise<{ id: string; createdAt: Date }[]> {
  const sql = "SELECT id, created_at FROM operations WHERE subject_id = ? AND status = 'running'";
  return select(tx, sql, [subjectId]);
}

async function endOperations(tx: Transaction, subjectId: string, end: OperationEnd, before?: Date): Promise<void> {
  for (const { id, createdAt } of await waiting(tx, subjectId)) {
    if (before === undefined || createdAt <= before) await operationModels(tx).Operation.end(id, end, tx);
  }
}
