import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import { type DatabaseBackup, dropBackups, dropOldBackups, lockBackup, unused } from './backupRows.ts';
import { type LeftOut, writeLeftOut } from './leftOut.ts';
import { lockDatabase, lockOf, requireLiving } from './spaceDatabase.ts';
import type { DatabaseActor } from './wishes.ts';

const mostDetail = 500;

interface Asked {
  spaceId: string;
  databaseId: string;
  id: string;
  actor: DatabaseActor;
}

/**
 * Begins a backup. The same id again is the same backup. Throws 404, 409 `DATABASE_DELETED`, `DATABASE_NOT_READY` or
 * `BACKUP_UNDER_WAY`.
 */
export async function askForBackup(database: Database, { spaceId, databaseId, id, actor }: Asked): Promise<void> {
  await transaction(database, async (tx) => {
    const found = await lockOf(tx, { spaceId, id: databaseId });
    if ((await lockBackup(tx, id)) !== undefined) return;
    requireLiving(found);
    if (!found.isMade) {
      const detail = 'The database is still being made.';
      throw new DomainError('conflict', 'DATABASE_NOT_READY', detail, { retryAfterSeconds: 1 });
    }
    if (await isUnderWay(tx, databaseId)) {
      throw new DomainError('conflict', 'BACKUP_UNDER_WAY', 'A backup of this database is being made.');
    }
    await begin(tx, { id, spaceId, databaseId, createdBy: actor.userId });
    await appendAudit(tx, spaceId, actor, 'database.backed-up', databaseId);
  });
}

async function isUnderWay(tx: Transaction, databaseId: string): Promise<boolean> {
  const sql = "SELECT id FROM space_database_backups WHERE database_id = ? AND state = 'making' LIMIT 1";
  return (await select(tx, sql, [databaseId])).length > 0;
}

async function begin(
  tx: Transaction,
  {
    id,
    spaceId,
    databaseId,
    createdBy,
  }: Record<'id' | 'spaceId' | 'databaseId', string> & { createdBy: string | null },
): Promise<void> {
  const now = new Date();
  const row = { id, spaceId, databaseId, state: 'making', createdBy };
  await insert(tx, 'space_database_backups', { ...row, createdAt: now, dueAt: now });
}

/** Throws 404, and 409 `BACKUP_IN_USE` while it is being made, or a database from it. */
export async function removeBackup(database: Database, { spaceId, databaseId, id, actor }: Asked): Promise<void> {
  await transaction(database, async (tx) => {
    await lockOf(tx, { spaceId, id: databaseId });
    const found = await lockBackup(tx, id);
    if (found?.databaseId !== databaseId) throw notFound('backup');
    if (found.state === 'making' || (await unused(tx, [found])).length === 0) {
      throw new DomainError(
        'conflict',
        'BACKUP_IN_USE',
        'The backup is still being made, or a database is being restored from it. Try again later.',
      );
    }
    await dropBackups(tx, [found]);
    await appendAudit(tx, spaceId, actor, 'database.backup-removed', databaseId);
  });
}

/** The backup that is to be made, with its database's name. Undefined if it is no longer wanted. */
export async function backupOrder(
  database: Database,
  id: string,
): Promise<(DatabaseBackup & { serverName: string }) | undefined> {
  return transaction(database, async (tx) => {
    const backup = await lockBackup(tx, id);
    if (backup?.state !== 'making') return undefined;
    const found = await lockDatabase(tx, backup.databaseId);
    return found?.state === 'living' ? { ...backup, serverName: found.serverName } : undefined;
  });
}

interface MadeBackup {
  id: string;
  objectKey: string;
  sizeBytes: number;
  sha256: Buffer;
  leftOut: LeftOut;
  kept: number;
}

/** Records a backup whose object is complete in the store. Deletes the oldest beyond `kept`. */
export async function keepBackup(
  database: Database,
  { id, objectKey, sizeBytes, sha256, leftOut, kept }: MadeBackup,
): Promise<void> {
  await transaction(database, async (tx) => {
    const backup = await lockBackup(tx, id);
    // Another worker has recorded it, or the database is gone. The object is then given up.
    if (backup?.state !== 'making') return;
    await driveModels(tx).DriveObject.keep(objectKey, sha256, tx);
    const as = {
      state: 'kept',
      objectKey,
      sizeBytes,
      leftOut: writeLeftOut(leftOut),
      errorDetail: null,
    };
    const end = { ...as, dueAt: null, endedAt: new Date() };
    await execute(tx, 'UPDATE space_database_backups SET ? WHERE id = ?', [end, id]);
    await dropOldBackups(tx, backup.databaseId, kept);
  });
}

/** Fails a backup for good. An error that an attempt has recorded stays. */
export async function failBackup(database: Database, id: string, code: string, kept: number): Promise<void> {
  await transaction(database, async (tx) => {
    const backup = await lockBackup(tx, id);
    if (backup?.state !== 'making') return;
    const end = { state: 'failed', errorCode: code, dueAt: null, endedAt: new Date() };
    await execute(tx, 'UPDATE space_database_backups SET ? WHERE id = ?', [end, id]);
    await dropOldBackups(tx, backup.databaseId, kept);
  });
}

/** Records why an attempt failed. The text has the tenant's data, so it is in the row and not in a history. */
export async function noteFailure({ pool }: Pick<Database, 'pool'>, id: string, detail: string | null): Promise<void> {
  const sql = "UPDATE space_database_backups SET error_detail = ? WHERE id = ? AND state = 'making'";
  await execute(pool, sql, [detail?.slice(0, mostDetail) ?? null, id]);
}

export type DueBackup = Waiting & { spaceId: string };

/** Backups that are still to be made. */
export const dueBackups = waitingIn<DueBackup>({
  table: 'space_database_backups',
  index: 'space_database_backups_due',
  columns: ['space_id'],
  where: 'due_at IS NOT NULL',
  time: 'due_at',
});

/** Databases with a time for their next backup. */
export const databasesToBackUp = waitingIn<DueBackup>({
  table: 'space_databases',
  index: 'space_databases_backup',
  columns: ['space_id'],
  where: 'backup_at IS NOT NULL',
  time: 'backup_at',
});

/** Begins a database's next backup if it is wanted, and sets the time of the one after it. */
export async function beginDueBackup(
  database: Database,
  databaseId: string,
  { nextAt, isWanted }: { nextAt: Date; isWanted: boolean },
): Promise<{ id: string; spaceId: string } | undefined> {
  return transaction(database, async (tx) => {
    const found = await lockDatabase(tx, databaseId);
    if (found === undefined) return undefined;
    const isLiving = found.state === 'living';
    await execute(tx, 'UPDATE space_databases SET backup_at = ? WHERE id = ?', [isLiving ? nextAt : null, databaseId]);
    if (!isWanted || !isLiving || !found.isMade || (await isUnderWay(tx, databaseId))) return undefined;
    const id = newId('databaseBackup');
    await begin(tx, { id, spaceId: found.spaceId, databaseId, createdBy: null });
    return { id, spaceId: found.spaceId };
  });
}
