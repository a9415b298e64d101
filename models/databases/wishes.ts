import { type Transaction, UniqueConstraintError } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type Operation, type OperationKind, operationModels } from '../operations/operation.ts';
import { findAccountOf, ownAccountOf, sealPassword } from './accounts.ts';
import { isRestoredFrom, lockBackup } from './backupRows.ts';
import { type ConnectedApp, connectApp, disconnectApp } from './connections.ts';
import { nameKey, namesOf, newName, newPassword } from './names.ts';
import { lockOf, requireLiving, type SpaceDatabase } from './spaceDatabase.ts';

export type DatabaseActor = Actor & { userId: string };

/** A request about one database of a space. */
export interface Asked {
  spaceId: string;
  id: string;
  actor: DatabaseActor;
}

export interface DatabaseSettings {
  installation: string;
  databases: { maxPerSpace: number; keptMs: number; rotationMs: number; backupMs: number };
}

type DatabaseOperation = Extract<
  OperationKind,
  | 'createDatabase'
  | 'deleteDatabase'
  | 'restoreDatabase'
  | 'purgeDatabase'
  | 'rotateDatabase'
  | 'compactDatabase'
  | 'connectApp'
  | 'disconnectApp'
>;

/**
 * Requests that change databases. Each changes the rows and begins an operation. A workflow aligns the server with the
 * rows, and ends the operation.
 */
export function createDatabaseWishes(database: Database, envelope: Envelope, settings: DatabaseSettings) {
  const { maxPerSpace, keptMs, rotationMs, backupMs } = settings.databases;
  const names = namesOf(settings.installation);

  /**
   * Applies a request and returns its operation. Undefined if there was nothing to change. `work` returns the database's
   * own columns to change. It may return true if it changed only other rows, and false if it changed nothing.
   */
  function change(
    { spaceId, id, actor }: Asked,
    kind: DatabaseOperation,
    work: (tx: Transaction, found: SpaceDatabase) => Promise<Record<string, unknown> | boolean>,
    operationId?: string,
  ): Promise<Operation | undefined> {
    return transaction(database, async (tx) => {
      const found = await lockOf(tx, { spaceId, id });
      const known = operationId && (await operationModels(tx).Operation.findByPk(operationId, { transaction: tx }));
      if (known) return known;
      const changed = await work(tx, found);
      if (changed === false) return undefined;
      await execute(tx, 'UPDATE space_databases SET ? WHERE id = ?', [
        { ...(changed !== true && changed), version: found.version + 1, dueAt: new Date() },
        id,
      ]);
      await appendAudit(tx, spaceId, actor, auditOf[kind], id);
      const { userId } = actor;
      return operationModels(tx).Operation.begin(
        { kind, spaceId, userId, subjectId: id, ...(operationId && { id: operationId }) },
        tx,
      );
    });
  }

  return {
    /**
     * Makes a database, empty or from a backup. The same id again is the same database. Throws 404, 409
     * `DATABASE_NAME_TAKEN` or `BACKUP_NOT_KEPT`, 422 `TOO_MANY_DATABASES`.
     */
    async make(
      { id, spaceId, name, from }: Pick<SpaceDatabase, 'id' | 'spaceId' | 'name'> & { from?: BackupReference },
      actor: DatabaseActor,
    ): Promise<Operation | undefined> {
      const account = { id: newId('databaseAccount'), spaceId };
      const sealed = await sealPassword(envelope, account, newPassword());
      return transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const sql = "SELECT id FROM space_databases WHERE space_id = ? AND state <> 'purged'";
        const there = await select<{ id: string }>(tx, sql, [spaceId]);
        const { Operation } = operationModels(tx);
        if (there.some((one) => one.id === id)) {
          return (
            (await Operation.findOne({ where: { subjectId: id, kind: 'createDatabase' }, transaction: tx })) ??
            undefined
          );
        }
        if (there.length >= maxPerSpace) throw tooMany(maxPerSpace);
        if (from !== undefined) await requireKept(tx, spaceId, from);
        const now = new Date();
        const backups = { restores: from?.id ?? null, backupAt: new Date(now.getTime() + backupMs) };
        const row = {
          ...backups,
          id,
          spaceId,
          name,
          liveName: nameKey(name),
          serverName: newName(names.database),
        };
        const state = { state: 'living', version: 1, dueAt: now, createdBy: actor.userId, createdAt: now };
        await insert(tx, 'space_databases', { ...row, ...state }).catch(asNameTaken);
        await insert(tx, 'space_database_accounts', {
          id: account.id,
          databaseId: id,
          spaceId,
          serverUser: newName(names.user),
          sealed,
        });
        await appendAudit(tx, spaceId, actor, auditOf.createDatabase, id);
        return Operation.begin({ kind: 'createDatabase', spaceId, userId: actor.userId, subjectId: id }, tx);
      });
    },

    /** Refuses all connections. The database can be restored for `keptMs`. Idempotent. Throws 404. */
    remove: (asked: Asked) =>
      change(asked, 'deleteDatabase', async (_tx, { state }) => {
        if (state === 'deleted') return false;
        const now = new Date();
        const purgeAt = new Date(now.getTime() + keptMs);
        return { state: 'deleted', liveName: null, deletedAt: now, purgeAt };
      }),

    /** Restores a deleted database. A living one stays as it is. Throws 404, 409 `DATABASE_NAME_TAKEN`. */
    restore: (asked: Asked) =>
      change(asked, 'restoreDatabase', async (tx, { id, spaceId, name, state, purgeAt }) => {
        if (state === 'living') return false;
        // The purge may have begun. The server would not have what the row says.
        if (purgeAt !== null && purgeAt <= new Date()) throw notFound('database');
        const sql = 'SELECT id FROM space_databases WHERE space_id = ? AND live_name = ? AND id <> ?';
        if ((await select(tx, sql, [spaceId, nameKey(name), id])).length > 0) throw nameTaken();
        // A deleted database is not backed up, so its time for that may have passed.
        return { state: 'living', liveName: nameKey(name), deletedAt: null, purgeAt: null, backupAt: new Date() };
      }),

    /** Purges a deleted database at once. Throws 404, 409 `DATABASE_NOT_DELETED` or `BACKUP_IN_USE`. */
    purge: (asked: Asked) =>
      change(asked, 'purgeDatabase', async (tx, { id, state }) => {
        if (state !== 'deleted') {
          throw new DomainError(
            'conflict',
            'DATABASE_NOT_DELETED',
            'Only a deleted database can be purged. Delete the database first.',
          );
        }
        if (await isRestoredFrom(tx, id)) {
          const detail =
            'A database is being restored from one of the backups of this database. Wait until that has ended.';
          throw new DomainError('conflict', 'BACKUP_IN_USE', detail);
        }
        return { state: 'purged', purgeAt: new Date() };
      }),

    /** Rewrites the tables, to free the space of deleted rows. Throws 404, 409 `DATABASE_DELETED`. */
    compact: (asked: Asked) =>
      change(asked, 'compactDatabase', async (_tx, found) => {
        requireLiving(found);
        return { compacts: found.version + 1 };
      }),

    /** Changes the space's name for the database, not the server's. Throws 404, 409 `DATABASE_NAME_TAKEN`. */
    rename: ({ spaceId, id, actor, name }: Asked & { name: string }) =>
      transaction(database, async (tx) => {
        const found = await lockOf(tx, { spaceId, id });
        if (found.name === name) return;
        const liveName = found.state === 'living' ? nameKey(name) : null;
        const sql = 'UPDATE space_databases SET name = ?, live_name = ? WHERE id = ?';
        await execute(tx, sql, [name, liveName, id]).catch(asNameTaken);
        await appendAudit(tx, spaceId, actor, 'database.renamed', id);
      }),

    /**
     * Gives the space's own account a new password. The previous one stays valid for `rotationMs`, older ones do not.
     * `now` ends the previous one at once, with the account's connections. The same operation id again is the same
     * password. Throws 404, 409 `DATABASE_DELETED`.
     */
    async rotate(asked: Asked & { operationId: string; now: boolean }) {
      const own = await ownAccountOf(database, asked.id);
      if (own === undefined) throw notFound('database');
      const sealed = await sealPassword(envelope, own, newPassword());
      const work = async (tx: Transaction, found: SpaceDatabase) => {
        requireLiving(found);
        // If the server never had the current password, the previous one stays the previous one.
        const before = asked.now
          ? 'previous_sealed = NULL, previous_until = NULL, is_cut = 1'
          : `previous_sealed = IF(set_version = password_version, sealed, previous_sealed),
              previous_until = ?`;
        await execute(
          tx,
          `UPDATE space_database_accounts SET ${before}, sealed = ?, password_version = password_version + 1
            WHERE id = ? AND database_id = ?`,
          [...(asked.now ? [] : [new Date(Date.now() + rotationMs)]), sealed, own.id, found.id],
        );
        return true;
      };
      return change(asked, 'rotateDatabase', work, asked.operationId);
    },

    /**
     * Gives an app of the space its own account, whose details its runs get. An app that has one keeps it. Throws 404,
     * 409 `DATABASE_DELETED` or `APP_HAS_DATABASE`.
     */
    async connect(asked: Asked & { app: ConnectedApp }) {
      const { app, spaceId, id } = asked;
      const before = await findAccountOf(database, { databaseId: id, appId: app.id });
      const account = { id: before ?? newId('databaseAccount'), spaceId };
      const sealed = await sealPassword(envelope, account, newPassword());
      return change(asked, 'connectApp', async (tx, found) => {
        requireLiving(found);
        return connectApp(tx, { database: found, app, account, sealed, serverUser: newName(names.user) });
      });
    },

    /** Revokes the app's account. Throws 404 for an app that was never connected. */
    disconnect: (asked: Asked & { itemId: string }) =>
      change(asked, 'disconnectApp', (tx, found) => disconnectApp(tx, found, asked.itemId)),
  };
}

interface BackupReference {
  id: string;
  databaseId: string;
}

/** Requires a complete backup of a database of this space that is not purged. */
async function requireKept(tx: Transaction, spaceId: string, { id, databaseId }: BackupReference): Promise<void> {
  await lockOf(tx, { spaceId, id: databaseId });
  const backup = await lockBackup(tx, id);
  if (backup?.databaseId !== databaseId) throw notFound('backup');
  if (backup.state === 'kept') return;
  throw new DomainError('conflict', 'BACKUP_NOT_KEPT', 'This backup is still being made, or has failed.');
}

const auditOf: Readonly<Record<DatabaseOperation, AuditAction>> = {
  createDatabase: 'database.made',
  deleteDatabase: 'database.deleted',
  restoreDatabase: 'database.restored',
  purgeDatabase: 'database.purged',
  rotateDatabase: 'database.rotated',
  compactDatabase: 'database.compacted',
  connectApp: 'database.app-connected',
  disconnectApp: 'database.app-disconnected',
};

function tooMany(most: number): DomainError {
  const detail = `A space has at most ${most} databases. Deleted databases count until they are purged.`;
  return new DomainError('unprocessable', 'TOO_MANY_DATABASES', detail);
}

function nameTaken(): DomainError {
  return new DomainError('conflict', 'DATABASE_NAME_TAKEN', 'The space already has a database of this name.');
}

function asNameTaken(error: unknown): never {
  throw error instanceof UniqueConstraintError ? nameTaken() : error;
}
