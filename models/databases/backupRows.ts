import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { type LeftOut, readLeftOut } from './leftOut.ts';

export type BackupState = 'making' | 'kept' | 'failed';

/** The content of a database at one moment. */
export interface DatabaseBackup {
  id: string;
  databaseId: string;
  spaceId: string;
  state: BackupState;
  /** The object with the backup's bytes. */
  objectKey: string | null;
  sizeBytes: number | null;
  leftOut: LeftOut;
  errorCode: string | null;
  /** For people who can fix the problem. */
  errorDetail: string | null;
  /** Null for an automatic backup. */
  createdBy: string | null;
  createdAt: Date;
  endedAt: Date | null;
}

const columns = `id, database_id, space_id, state, object_key, size_bytes, left_out, error_code, error_detail,
  created_by, created_at, ended_at`;

function read(row: object): DatabaseBackup {
  const found = row as Omit<DatabaseBackup, 'leftOut'> & { leftOut: string | null };
  const sizeBytes = found.sizeBytes === null ? null : Number(found.sizeBytes);
  return { ...found, sizeBytes, leftOut: readLeftOut(found.leftOut) };
}

/** Newest first. */
export async function listBackups(
  database: Pick<Database, 'pool'>,
  databaseId: string,
  page: PageRequest,
): Promise<Page<DatabaseBackup>> {
  const sql = `SELECT ${columns} FROM space_database_backups WHERE database_id = ?`;
  return readPage(database, page, { sql, values: [databaseId], by: 'id', order: 'desc', read });
}

export async function findBackup({ pool }: Pick<Database, 'pool'>, id: string): Promise<DatabaseBackup | undefined> {
  const sql = `SELECT ${columns} FROM space_database_backups WHERE id = ?`;
  const [row] = await select(pool, sql, [id]);
  return row && read(row);
}

/** Throws 404. */
export async function getBackup(
  database: Pick<Database, 'pool'>,
  { databaseId, id }: { databaseId: string; id: string },
): Promise<DatabaseBackup> {
  const found = await findBackup(database, id);
  if (found?.databaseId !== databaseId) throw notFound('backup');
  return found;
}

/** Locks a backup. Undefined if there is none. */
export async function lockBackup(tx: Transaction, id: string): Promise<DatabaseBackup | undefined> {
  const sql = `SELECT ${columns} FROM space_database_backups WHERE id = ? FOR UPDATE`;
  const [row] = await select<object>(tx, sql, [id]);
  return row && read(row);
}

/** Deletes backups and dooms their objects. */
export async function dropBackups(tx: Transaction, backups: readonly Pick<DatabaseBackup, 'id' | 'objectKey'>[]) {
  if (backups.length === 0) return;
  const keys = backups.flatMap(({ objectKey }) => objectKey ?? []);
  await driveModels(tx).DriveObject.doom(keys, tx);
  await execute(tx, 'DELETE FROM space_database_backups WHERE id IN (?)', [backups.map(({ id }) => id)]);
}

/** Deletes the backups of a purged database, except those from which a database is being made. */
export async function dropBackupsOf(tx: Transaction, databaseId: string): Promise<void> {
  await dropBackups(tx, await unused(tx, await backupsOf(tx, databaseId)));
}

/** Deletes a backup after a restore from it has ended, if its own database is gone and no other restore uses it. */
export async function dropIfLeft(tx: Transaction, id: string): Promise<void> {
  const found = await lockBackup(tx, id);
  if (found === undefined) return;
  const sql = "SELECT id FROM space_databases WHERE id = ? AND state <> 'purged'";
  if ((await select(tx, sql, [found.databaseId])).length === 0) await dropBackups(tx, await unused(tx, [found]));
}

/** True if a database is being made from one of this database's backups. */
export async function isRestoredFrom(tx: Transaction, databaseId: string): Promise<boolean> {
  const all = await backupsOf(tx, databaseId);
  return (await unused(tx, all)).length < all.length;
}

/** Deletes backups beyond the newest `kept` of each state, except those from which a database is being made. */
export async function dropOldBackups(tx: Transaction, databaseId: string, kept: number): Promise<void> {
  const ended = (await backupsOf(tx, databaseId)).filter(({ state }) => state !== 'making');
  const beyond = (state: BackupState) => ended.filter((one) => one.state === state).slice(kept);
  const old = [...beyond('kept'), ...beyond('failed')];
  await dropBackups(tx, await unused(tx, old));
}

/** The backups from which no database is being made. */
export async function unused(tx: Transaction, backups: readonly DatabaseBackup[]): Promise<DatabaseBackup[]> {
  if (backups.length === 0) return [];
  const sql = 'SELECT restores FROM space_databases WHERE restores IN (?)';
  const used = await select<{ restores: string }>(tx, sql, [backups.map(({ id }) => id)]);
  return backups.filter(({ id }) => !used.some(({ restores }) => restores === id));
}

/** Newest first. */
async function backupsOf(tx: Transaction, databaseId: string): Promise<DatabaseBackup[]> {
  const sql = `SELECT ${columns} FROM space_database_backups WHERE database_id = ? ORDER BY id DESC FOR UPDATE`;
  return (await select<object>(tx, sql, [databaseId])).map(read);
}
