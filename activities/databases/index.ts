import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { RestoreRefused, TenantServerError } from '../../integrations/databases/errors.ts';
import {
  type Alignment,
  failRestore,
  finishAlignment,
  giveUpAlignment,
  takesLong,
} from '../../models/databases/alignment.ts';
import { purgeDatabasesOf } from '../../models/databases/purge.ts';
import { isLiving } from '../../models/databases/spaceDatabase.ts';
import { keepAlive } from '../keepAlive.ts';
import { requireOrder } from '../order.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import { createBackupActivities } from './backups.ts';
import type { DatabaseDeps } from './deps.ts';
import { fillOf } from './fill.ts';
import { createDatabaseSweeps, databaseSweeps } from './sweeps.ts';
import { asWanted } from './wanted.ts';

const lookEveryMs = 1_000;
const restoreFailed = {
  code: 'DATABASE_RESTORE_FAILED',
  detail: 'The database server refused the content of this backup, or the backup is incomplete. The log says why.',
};

/** A failure that is retried by default. Its reason is in the log, not in the history. */
function away(type: string, { nonRetryable = false } = {}): ApplicationFailure {
  return ApplicationFailure.create({ type, message: 'A service is unavailable; trying again.', nonRetryable });
}

/** Retries if a part is unavailable, or another worker has taken over. */
function passed(error: unknown): never {
  throw error instanceof DomainError && error.kind === 'unavailable' ? away(error.code) : error;
}

/** Aligns the server with the row of a database. */
function createAlign(deps: DatabaseDeps) {
  const { database, logger, spaceDatabases, tenantServer } = deps;

  /** Undefined if there is no such row. After `failed` and `ended`, the row must be read again. */
  async function apply(
    databaseId: string,
    cancelled: AbortSignal,
  ): Promise<Alignment | 'failed' | 'ended' | undefined> {
    if (tenantServer === undefined) throw away('NOT_CONFIGURED', { nonRetryable: true });
    let aligned: Alignment | undefined;
    // Long work in a database that is deleted is no longer needed.
    const options = { logger, subject: { databaseId }, intervalMs: lookEveryMs };
    using deleted = new UnwantedWatch(async () => !(await isLiving(database, databaseId)), options);
    const signal = AbortSignal.any([cancelled, deleted.signal]);
    try {
      const wanted = await tenantServer.align(databaseId, async () => {
        aligned = await spaceDatabases.alignment(databaseId);
        return aligned && { ...asWanted(aligned), fill: await fillOf(deps, aligned, signal), signal };
      });
      const leftOut = wanted?.fill?.leftOut;
      return aligned && { ...aligned, ...(leftOut && { leftOut }) };
    } catch (error) {
      cancelled.throwIfAborted();
      if (deleted.signal.aborted && aligned?.state === 'living') return 'ended';
      if (error instanceof RestoreRefused && aligned !== undefined) {
        logger.warn({ err: error, databaseId }, 'A database could not be made from its backup.');
        if (!(await failRestore(database, aligned, restoreFailed))) throw away('TAKEN_OVER');
        return 'failed';
      }
      if (!(error instanceof TenantServerError)) return passed(error);
      logger.warn({ err: error, databaseId }, 'A database is not in its wanted state on the server yet.');
      throw away('DATABASE_SERVER_FAILED');
    }
  }

  return async (databaseId: string, { leavesLong }: { leavesLong: boolean }): Promise<'takesLong' | undefined> => {
    using heartbeat = keepAlive();
    for (;;) {
      heartbeat.cancelled.throwIfAborted();
      if (leavesLong && (await takesLong(database, databaseId))) return 'takesLong';
      const done = await apply(databaseId, heartbeat.cancelled);
      if (done === 'failed' || done === 'ended') continue;
      if (done === undefined || (await finishAlignment(database, done).catch(passed))) return undefined;
    }
  };
}

export function createDatabaseActivities(deps: DatabaseDeps) {
  const { database, logger, tenantServer, workflows } = deps;
  const align = createAlign(deps);
  const { failDatabaseBackup } = createBackupActivities(deps);
  return {
    /**
     * Aligns the server with the row of a database, and ends the operations that asked for it. Includes requests that
     * come meanwhile. Returns `takesLong` if `alignDatabaseAtLength` must do the work.
     */
    alignDatabase: ({ databaseId }: { databaseId: string }) => align(databaseId, { leavesLong: true }),

    /** Fails the operations that waited when the alignment failed. The sweeper tries again. */
    giveUpDatabase: ({ databaseId, failedAtMs }: { databaseId: string; failedAtMs?: number }): Promise<void> =>
      giveUpAlignment(
        database,
        databaseId,
        {
          code: 'DATABASE_SERVER_UNAVAILABLE',
          detail:
            'The database server does not answer or refuses the change now. The operation is retried automatically.',
        },
        failedAtMs === undefined ? new Date() : new Date(failedAtMs),
      ),

    /**
     * Has the databases of a deleted space removed, and returns how many to wait for. A space does not wait for a
     * server that is not configured: the rows of its databases stay until one is configured again.
     */
    async purgeDatabasesOf(scope: { threadId: string } | { spaceId: string }): Promise<number> {
      await requireOrder(database, scope);
      if (!('spaceId' in scope)) return 0;
      const left = await purgeDatabasesOf(database, scope.spaceId);
      if (tenantServer === undefined) {
        if (left.length > 0) logger.warn({ ...scope }, 'The server that has databases of a space is not configured.');
        return 0;
      }
      for (const one of left) await workflows.startDatabase(one);
      return left.length;
    },

    failDatabaseBackup,
    ...createDatabaseSweeps(deps),
  };
}

/** The activities of two task queues of their own, with few at once, so that other work does not wait. */
export function createDatabaseQueueActivities(deps: DatabaseDeps) {
  const align = createAlign(deps);
  const { backUpDatabase } = createBackupActivities(deps);
  return {
    backup: { backUpDatabase },
    long: {
      /** Aligns a database, however long that takes. */
      alignDatabaseAtLength: async ({ databaseId }: { databaseId: string }): Promise<void> =>
        void (await align(databaseId, { leavesLong: false })),
    },
  };
}

export const databases = { create: createDatabaseActivities, sweeps: databaseSweeps };
