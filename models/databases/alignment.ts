import type { RowDataPacket } from 'mysql2';
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

/** How the server should have a database now. */
export interface Alignment {
  id: string;
  version: number;
  serverName: string;
  state: DatabaseState;
  isFull: boolean;
  isFullOfDefinitions: boolean;
  /** The version that wished its tables to be written anew; 0 for none. */
  compacts: number;
  /** The backup from which it is to be made. */
  restores: string | null;
  /** Of that, where the server has been filled from it. */
  leftOut?: LeftOut;
  accounts: AlignedAccount[];
  /** When it is to be had otherwise, by the time alone. */
  nextAt: Date | null;
}

export interface AlignedAccount {
  id: string;
  serverUser: string;
  password: string;
  previous: string | undefined;
  passwordVersion: number;
  /** Whether the server may have other passwords for it. */
  setsPasswords: boolean;
  isRevoked: boolean;
  /** Whether whoever is in by it is cut off once. */
  isCut: boolean;
  /** Whether it is one of those with which Atrium reads. */
  onlyReads: boolean;
  /** Whether it is the space's own. */
  isOwn: boolean;
}

/** What the server should have now; undefined when there is no such row. A deleted one whose days are over is gone. */
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
  // What goes needs no password, and its space's keys may be gone before it.
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

/** Whether it takes long to have a database as it is wanted: it is filled, or its tables are written anew. */
export async function takesLong({ pool }: Pick<Database, 'pool'>, id: string): Promise<boolean> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT 1 FROM space_databases
      WHERE id = ? AND state = 'living' AND (compacts > 0 OR (restores IS NOT NULL AND is_made = 0))`,
    [id],
  );
  return rows.length > 0;
}

/**
 * Begins to make a database from a backup. Gives it a name on the server that no attempt before had, which the alignment
 * has from then on. Throws 503 `DATABASE_TAKEN_OVER` where another has begun since the alignment was read.
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
  return new DomainError('unavailable', 'DATABASE_TAKEN_OVER', 'Somebody else is making this database.');
}

/**
 * Takes note that the server has it so, and ends the operations that have asked for it. False where something else was
 * wished meanwhile: then it is to be done again, by whoever comes next, also where another has already done what was
 * wished: nobody knows which of the two the server has. Throws 503 `DATABASE_TAKEN_OVER` where another is making it.
 */
export async function finishAlignment(database: Database, aligned: Alignment): Promise<boolean> {
  return transaction(database, async (tx) => {
    const row = await lockDatabase(tx, aligned.id);
    if (row === undefined) return true;
    if (row.serverName !== aligned.serverName) throw takenOver();
    if (row.version !== aligned.version) {
      // Whatever else was wished meanwhile, what took long is not done again.
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
    // What is deleted before it was filled is filled when it is restored.
    if (aligned.restores === null || aligned.state !== 'deleted') await noteFilled(tx, aligned);
    const note = { due_at: aligned.nextAt, compacts: 0 };
    await execute(tx, 'UPDATE space_databases SET ? WHERE id = ?', [note, aligned.id]);
    if (aligned.state === 'purged') await dropBackupsOf(tx, aligned.id);
    await endOperations(tx, aligned.id, { status: 'succeeded', result: { databaseId: aligned.id } });
    return true;
  });
}

/** All that it was made from is in it, or it has gone. */
async function noteFilled(tx: Transaction, { id, restores, state, leftOut }: Alignment): Promise<void> {
  const made = { is_made: state === 'purged' ? 0 : 1, restores: null };
  const note = leftOut === undefined ? made : { ...made, left_out: writeLeftOut(leftOut) };
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

/** Ends what waits for a server that does not do it. What was wished stays wished: the sweep asks again. */
export async function giveUpAlignment(
  database: Database,
  id: string,
  failure: { code: string; detail: string },
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockDatabase(tx, id);
    // It is not begun again and again: whoever wants it asks once more.
    await execute(tx, 'UPDATE space_databases SET compacts = 0 WHERE id = ?', [id]);
    await endOperations(tx, id, { status: 'failed', ...failure });
  });
}

/** What cannot be made from its backup goes, and whoever waits is told. False where another is making it. */
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

async function endOperations(tx: Transaction, subjectId: string, end: OperationEnd): Promise<void> {
  const sql = "SELECT id FROM operations WHERE subject_id = ? AND status = 'running'";
  for (const { id } of await select<{ id: string }>(tx, sql, [subjectId])) {
    await operationModels(tx).Operation.end(id, end, tx);
  }
}
