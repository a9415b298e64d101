import { setTimeout as delay } from 'node:timers/promises';
import { endConnection } from './align.ts';
import { type TenantAddress, type TenantConnection, withTenantConnection } from './connection.ts';
import { processesOn } from './processes.ts';
import { UndoWatch } from './undo.ts';

/** How much longer than allowed a statement or a transaction may take before its connection is ended with it. */
export const patience = 2;

interface Running {
  id: number;
  user: string;
  seconds: number;
}

/** The accounts whose names begin so, and what a statement of theirs may take. */
export interface Watched {
  prefix: string;
  queryMs: number;
}

/**
 * Ends the statements that take longer than they may: a session can lift the server's own limit. One that goes on all
 * the same, since it catches its end in a loop, loses its connection, and so does a transaction that stays open, or
 * that puts too much aside. Returns how many were ended.
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

/** What a session may put aside on the disk. MariaDB bounds that by itself. */
const temporaryBytes = 512 * 1_048_576;

/** The connections that put too much aside, in temporary tables of theirs or of the server's, on MySQL. */
async function largeSessions(connection: TenantConnection): Promise<number[]> {
  const large = await connection.rows<{ id: number }>(
    'SELECT ID AS id FROM information_schema.INNODB_SESSION_TEMP_TABLESPACES WHERE SIZE > ?',
    [temporaryBytes],
  );
  return large.map(({ id }) => Number(id));
}

/**
 * MySQL's list of processes counts anew with each statement inside a procedure, so that one which loops over short ones
 * would never be long; its performance schema has the call that they are in.
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
 * One that is open holds its locks, and keeps the server from forgetting what everybody has deleted: it ends when it
 * does nothing for too long, and when it is too old, whatever it does.
 */
async function transactionsOn(connection: TenantConnection): Promise<{ id: number; seconds: number }[]> {
  // `trx_started` is in the server's own time zone, as this session is. SET TIMESTAMP moves MySQL's TIME, and not this.
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
  /** How often; each second without it. */
  everyMs?: number;
  onFailure(error: unknown): void;
}

/** Looks again and again, over one connection, until it is called off. A server that does not answer is asked again. */
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
