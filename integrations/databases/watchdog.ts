import { setTimeout as delay } from 'node:timers/promises';
import { endConnection } from './align.ts';
import { type TenantAddress, type TenantConnection, withTenantConnection } from './connection.ts';
import { processesOn } from './processes.ts';
import { UndoWatch } from './undo.ts';

/** A statement or transaction that takes this many times its limit loses its connection. */
export const patience = 2;

interface Running {
  id: number;
  user: string;
  seconds: number;
}

/** A prefix of account names, and the time limit of their statements. */
export interface Watched {
  prefix: string;
  queryMs: number;
}

/**
 * Ends statements that exceed their limit, because a session can lift the server's own limit. A statement that catches
 * its end in a loop, and so continues, loses its connection. So does a transaction that stays open, or a session that
 * stores too much on disk. Returns how many were ended.
 */
export async function endLongStatements(
  connection: TenantConnection,
  watched: readonly Watched[],
  undo = new UndoWatch(),
): Promise<number> {
  const limitOf = ({ user }: { user: string }) => {
    const found = watched.find(({ prefix }) => user.startsWith(prefix));
    return found === undefined ? Number.POSITIVE_INFINITY : found.queryMs / 1_000;
  };
  const processes = await processesOn(connection);
  const running = connection.isMariaDb ? processes.filter(({ isIdle }) => !isIdle) : await runningOnMySql(connection);
  const long = running.filter((one) => one.seconds > limitOf(one));
  for (const one of long) {
    await endConnection(connection, one.id, one.seconds > limitOf(one) * patience ? '' : 'QUERY');
  }
  const ours = new Map(processes.filter((one) => Number.isFinite(limitOf(one))).map((one) => [one.id, one]));
  const over = [
    ...(connection.isMariaDb ? [] : await largeSessions(connection)),
    ...(await transactionsOn(connection)).flatMap(({ id, seconds }) => {
      const found = ours.get(id);
      if (found === undefined) return [];
      const limit = limitOf(found);
      return seconds > limit * patience || (found.isIdle && found.seconds > limit) ? [id] : [];
    }),
  ].filter((id) => ours.has(id));
  for (const id of over) await endConnection(connection, id);
  return long.length + over.length + (await undo.look(connection, (id) => ours.has(id)));
}

/** The limit for a session's temporary disk space. MariaDB has its own. */
const temporaryBytes = 512 * 1_048_576;

/** Connections on MySQL whose temporary tables, their own or the server's, take too much disk. */
async function largeSessions(connection: TenantConnection): Promise<number[]> {
  const large = await connection.rows<{ id: number }>(
    'SELECT ID AS id FROM information_schema.INNODB_SESSION_TEMP_TABLESPACES WHERE SIZE > ?',
    [temporaryBytes],
  );
  return large.map(({ id }) => Number(id));
}

/**
 * MySQL's process list restarts its clock with each statement inside a procedure, so a loop over short ones would never
 * count as long. The performance schema has the outer call.
 */
function runningOnMySql(connection: TenantConnection): Promise<Running[]> {
  return connection.rows<Running>(
    `SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, e.TIMER_WAIT / 1e12 AS seconds
       FROM performance_schema.events_statements_current e
       JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID
      WHERE e.NESTING_EVENT_LEVEL = 0 AND e.END_EVENT_ID IS NULL AND t.PROCESSLIST_USER IS NOT NULL`,
  );
}

/**
 * An open transaction holds locks, and keeps the server from purging deleted rows. It is ended when it is idle for too
 * long, or too old.
 */
async function transactionsOn(connection: TenantConnection): Promise<{ id: number; seconds: number }[]> {
  // `trx_started` is in the server's time zone, as this session is. SET TIMESTAMP affects MySQL's TIME, but not this.
  const open = await connection.rows<{ id: number; seconds: number }>(
    `SELECT trx_mysql_thread_id AS id, UNIX_TIMESTAMP() - UNIX_TIMESTAMP(trx_started) AS seconds
       FROM information_schema.INNODB_TRX`,
  );
  return open.map(({ id, seconds }) => ({ id: Number(id), seconds: Number(seconds) }));
}

const lookEveryMs = 1_000;
const longestWaitMs = 30_000;

export interface WatchOptions {
  signal: AbortSignal;
  /** The default is every second. */
  everyMs?: number;
  onFailure(error: unknown): void;
}

/** Looks repeatedly over one connection until it is aborted. Reconnects to a server that does not answer. */
export async function watchServer(
  address: TenantAddress,
  look: (connection: TenantConnection) => Promise<unknown>,
  { signal, onFailure, everyMs = lookEveryMs }: WatchOptions,
): Promise<void> {
  const rest = (ms: number) => delay(ms, undefined, { signal }).catch(() => undefined);
  for (let waitMs = lookEveryMs; !signal.aborted; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    try {
      await withTenantConnection(address, async (connection) => {
        for (; !signal.aborted; await rest(everyMs)) {
          await look(connection);
          waitMs = lookEveryMs;
        }
      });
    } catch (error) {
      onFailure(error);
      await rest(waitMs);
    }
  }
}
