import { setTimeout as delay } from 'node:timers/promises';
import type { PoolConnection } from 'mysql2/promise';
import { DomainError } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** Names this database too, since named locks belong to the whole server. */
const lockName = "CONCAT('atrium_backup_', LEFT(SHA2(DATABASE(), 256), 40))";
/** How often the server is asked whether it still has the lock. This also keeps the connection open. */
const askMs = 10_000;

/**
 * The lock of a backup that is being made. A connection holds it, so a killed process loses it. One backup at a time
 * has it, and meanwhile no object is removed from the store.
 */
export interface BackupHold extends AsyncDisposable {
  /** Aborted when the lock is lost. */
  signal: AbortSignal;
  /** Rejects if the lock is no longer held. */
  assertHeld(): Promise<void>;
}

/** Throws 409 `BACKUP_UNDER_WAY` if another backup is being made. */
export async function holdForBackup(database: Database): Promise<BackupHold> {
  const patient = database.patient();
  let connection: PoolConnection;
  try {
    connection = await patient.pool.getConnection();
    await take(connection);
  } catch (error) {
    await patient.close();
    throw error;
  }
  const [lost, over] = [new AbortController(), new AbortController()];
  const assertHeld = async () => {
    lost.signal.throwIfAborted();
    const rows = await select(connection, `SELECT IS_USED_LOCK(${lockName}) = CONNECTION_ID() AS held`);
    if (rows[0]?.held !== 1) throw lostHold();
  };
  const watch = async () => {
    for (;;) {
      await delay(askMs, undefined, { signal: over.signal });
      await assertHeld();
    }
  };
  const watching = watch().catch(() => {
    if (!over.signal.aborted) lost.abort(lostHold());
  });
  return {
    signal: lost.signal,
    assertHeld,
    async [Symbol.asyncDispose]() {
      over.abort();
      await watching;
      // The server frees the lock when its connection ends, with the pool.
      connection.release();
      await patient.close();
    },
  };
}

async function take(connection: PoolConnection): Promise<void> {
  await connection.query('SET SESSION wait_timeout = DEFAULT');
  const rows = await select(connection, `SELECT GET_LOCK(${lockName}, 0) AS taken`);
  if (rows[0]?.taken === 1) return;
  const detail = 'Another backup of this installation is being made. Wait until it has finished.';
  throw new DomainError('conflict', 'BACKUP_UNDER_WAY', detail);
}

function lostHold(): DomainError {
  const detail =
    'The database released the lock that keeps files in the bucket during the backup. Run the backup again.';
  return new DomainError('unavailable', 'BACKUP_LOCK_LOST', detail);
}

/**
 * Whether a backup is being made. A process that removes objects first reads which ones, and then asks. If no backup
 * holds the lock at that moment, no row of a later backup refers to these objects.
 */
export async function isHeldForBackup({ pool }: Pick<Database, 'pool'>): Promise<boolean> {
  const rows = await select(pool, `SELECT IS_USED_LOCK(${lockName}) IS NOT NULL AS held`);
  return rows[0]?.held === 1;
}
