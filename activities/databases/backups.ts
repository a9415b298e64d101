import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { LeftOut } from '../../integrations/databases/dump/leftOut.ts';
import { RowTooLarge, TenantServerError } from '../../integrations/databases/errors.ts';
import { backupOrder, failBackup, keepBackup, noteFailure } from '../../models/databases/backups.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import { keepAlive } from '../keepAlive.ts';
import type { DatabaseDeps } from './deps.ts';

export function createBackupActivities(deps: DatabaseDeps) {
  const { config, database, logger, spaceDatabases, storage, tenantServer, workflows } = deps;
  const kept = config.databases.backupsKept;

  return {
    /** Makes a backup. A killed attempt starts over, and the bytes that it sent to the store are removed. */
    async backUpDatabase({ backupId }: { backupId: string }): Promise<void> {
      using heartbeat = keepAlive();
      const signal = heartbeat.cancelled;
      const order = await backupOrder(database, backupId);
      if (order === undefined) return failBackup(database, backupId, 'DATABASE_DELETED', kept);
      if (tenantServer === undefined) throw failure('DATABASES_NOT_CONFIGURED', { nonRetryable: true });
      const { databaseId, spaceId, serverName } = order;
      const keeper = await spaceDatabases.readerOf(databaseId, 'keeper');
      if (keeper === undefined) {
        void workflows.startDatabase({ id: databaseId, spaceId });
        throw failure('DATABASE_NOT_READY');
      }
      try {
        await using arriving = await beginObject(
          { database, store: storage, quotaBytes: config.drive.quotaBytes },
          spaceId,
        );
        const { objectKey, reserve } = arriving;
        const sent = { fileName: 'backup.gz', maxBytes: Number.MAX_SAFE_INTEGER, reserve };
        const leftOut = new LeftOut();
        const { size, sha256 } = await tenantServer.dump(
          { ...keeper, database: serverName },
          signal,
          (bytes) =>
            pipeline(
              Readable.from(bytes),
              createGzip(),
              (zipped: AsyncIterable<Buffer>) => storage.write(objectKey, zipped, sent),
              { signal },
            ),
          leftOut,
        );
        await keepBackup(database, { id: backupId, objectKey, sizeBytes: size, sha256, leftOut, kept });
      } catch (error) {
        signal.throwIfAborted();
        logger.warn({ err: error, backupId, databaseId }, 'A backup of a database could not be made.');
        await noteFailure(database, backupId, detailOf(error));
        throw asFailure(error);
      }
    },

    /** Fails a backup for good. The next one is made at its time. */
    failDatabaseBackup: ({ backupId, code }: { backupId: string; code: string }): Promise<void> =>
      failBackup(database, backupId, code, kept),
  };
}

/** Only the code, because a text would stay in the history. */
function failure(code: string, { nonRetryable = false } = {}): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message: code, nonRetryable });
}

/** Shown with the backup. */
function detailOf(error: unknown): string | null {
  if (!(error instanceof RowTooLarge)) return null;
  return `The table "${error.table}" has a row that is larger than ${error.maxBytes} bytes. Rows that large cannot be backed up.`;
}

const [noSuchTable, changedMeanwhile] = [1146, 1412];

function asFailure(error: unknown): unknown {
  // The row is as large at the next attempt.
  if (error instanceof RowTooLarge) return failure('ROW_TOO_LARGE', { nonRetryable: true });
  if (error instanceof TenantServerError && (error.errno === noSuchTable || error.errno === changedMeanwhile)) {
    return failure('TABLES_CHANGED_MEANWHILE');
  }
  if (error instanceof TenantServerError) return failure('DATABASE_SERVER_UNAVAILABLE');
  if (error instanceof DomainError) return failure(error.code, { nonRetryable: error.kind !== 'unavailable' });
  return failure('BACKUP_FAILED');
}
