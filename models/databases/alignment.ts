import type { Transaction } from 'sequelize';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Database, transaction } from '../database.ts';
import { type OperationEnd, operationModels } from '../operation.ts';
import { execute, select } from '../sql.ts';
import { accountsOf, type DatabaseAccount, openPassword } from './accounts.ts';
import { dropBackupsOf, dropIfLeft } from './backupRows.ts';
import { type DatabaseState, lockDatabase } from './spaceDatabase.ts';

/** How the server should have a database now. */
export interface Alignment {
  id: string;
  version: number;
  serverName: string;
  state: DatabaseState;
  isFull: boolean;
  compacts: boolean;
  /** The backup from which it is to be made. */
  restores: string | null;
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
  const { version, serverName, state, purgeAt, isFull, compacts } = found;
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
  return { id, version, serverName, state, isFull, compacts, restores, accounts, nextAt };
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

/**
 * Takes note that the server has it so, and ends the operations that have asked for it. False where something else was
 * wished meanwhile: then it is to be done again, by whoever comes next, also where another has already done what was
 * wished: nobody knows which of the two the server has.
 */
export async function finishAlignment(database: Database, aligned: Alignment): Promise<boolean> {
  return transaction(database, async (tx) => {
    const row = await lockDatabase(tx, aligned.id);
    if (row === undefined) return true;
    if (row.version !== aligned.version) {
      const sql = 'UPDATE space_databases SET due_at = ?, version = version + 1 WHERE id = ?';
      await execute(tx, sql, [new Date(), aligned.id]);
      return false;
    }
    for (const account of aligned.accounts) await noteSet(tx, account);
    await execute(tx, 'UPDATE space_database_accounts SET is_cut = 0 WHERE database_id = ? AND is_cut = 1', [
      aligned.id,
    ]);
    // What is deleted before it was filled is filled when it is restored.
    const isFilled = aligned.restores === null || aligned.state === 'living';
    const made = isFilled ? { is_made: aligned.state === 'purged' ? 0 : 1, restores: null } : {};
    const note = { due_at: aligned.nextAt, compacts: 0, ...made };
    await execute(tx, 'UPDATE space_databases SET ? WHERE id = ?', [note, aligned.id]);
    if (aligned.state === 'purged') await dropBackupsOf(tx, aligned.id);
    if (aligned.restores !== null && isFilled) await dropIfLeft(tx, aligned.restores);
    await endOperations(tx, aligned.id, { status: 'succeeded', result: { databaseId: aligned.id } });
    return true;
  });
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

/** What cannot be made from its backup goes, and whoever waits is told. */
export async function failRestore(
  database: Database,
  id: string,
  failure: { code: string; detail: string },
): Promise<void> {
  const now = new Date();
  await transaction(database, async (tx) => {
    const row = await lockDatabase(tx, id);
    if (row === undefined || row.isMade) return;
    await execute(
      tx,
      `UPDATE space_databases
          SET state = 'purged', live_name = NULL, restores = NULL, purge_at = ?, due_at = ?, version = version + 1
        WHERE id = ?`,
      [now, now, id],
    );
    if (row.restores !== null) await dropIfLeft(tx, row.restores);
    await endOperations(tx, id, { status: 'failed', ...failure });
  });
}

async function endOperations(tx: Transaction, subjectId: string, end: OperationEnd): Promise<void> {
  const sql = "SELECT id FROM operations WHERE subject_id = ? AND status = 'running'";
  for (const { id } of await select<{ id: string }>(tx, sql, [subjectId])) {
    await operationModels(tx).Operation.end(id, end, tx);
  }
}
