import { setTimeout as delay } from 'node:timers/promises';
import { endConnection } from './align.ts';
import { type TenantAddress, type TenantConnection, withTenantConnection } from './connection.ts';
import type { AccountLimits } from './types.ts';

/** How much longer than allowed a statement or a transaction may take before its connection is ended with it. */
export const patience = 2;

interface Running {
  id: number;
  user: string;
  seconds: number;
}

/**
 * Ends the statements that take longer than they may: a session can lift the server's own limit. One that goes on all
 * the same, since it catches its end in a loop, loses its connection, and so does a transaction that stays open.
 * Returns how many were ended.
 */
export async function endLongStatements(
  connection: TenantConnection,
  prefix: string,
  { queryMs }: Pick<AccountLimits, 'queryMs'>,
): Promise<number> {
  const seconds = queryMs / 1_000;
  const long = await (connection.isMariaDb ? longOnMariaDb : longOnMySql)(connection, seconds);
  const ours = long.filter(({ user }) => user.startsWith(prefix));
  for (const one of ours) await endConnection(connection, one.id, one.seconds > seconds * patience ? '' : 'QUERY');
  const large = connection.isMariaDb ? 0 : await endLargeSessions(connection, prefix);
  return ours.length + large + (await endLongTransactions(connection, prefix, seconds));
}

/** What a session may put aside on the disk. MariaDB bounds that by itself. */
const temporaryBytes = 512 * 1_048_576;

/** Ends the connections that put too much aside, in temporary tables of theirs or of the server's, on MySQL. */
async function endLargeSessions(connection: TenantConnection, prefix: string): Promise<number> {
  const large = await connection.rows<{ id: number; user: string }>(
    `SELECT p.ID AS id, p.USER AS user FROM information_schema.INNODB_SESSION_TEMP_TABLESPACES s
       JOIN information_schema.PROCESSLIST p ON p.ID = s.ID WHERE s.SIZE > ?`,
    [temporaryBytes],
  );
  const ours = large.filter(({ user }) => user.startsWith(prefix));
  for (const { id } of ours) await endConnection(connection, id);
  return ours.length;
}

function longOnMariaDb(connection: TenantConnection, seconds: number): Promise<Running[]> {
  return connection.rows<Running>(
    `SELECT ID AS id, USER AS user, TIME AS seconds FROM information_schema.PROCESSLIST
      WHERE COMMAND <> 'Sleep' AND TIME > ?`,
    [seconds],
  );
}

/**
 * MySQL's list of processes counts anew with each statement inside a procedure, so that one which loops over short ones
 * would never be long; its performance schema has the call that they are in.
 */
function longOnMySql(connection: TenantConnection, seconds: number): Promise<Running[]> {
  return connection.rows<Running>(
    `SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, e.TIMER_WAIT / 1e12 AS seconds
       FROM performance_schema.events_statements_current e
       JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID
      WHERE e.NESTING_EVENT_LEVEL = 0 AND e.END_EVENT_ID IS NULL AND t.PROCESSLIST_USER IS NOT NULL
        AND e.TIMER_WAIT > ? * 1e12`,
    [seconds],
  );
}

/**
 * One that is open holds its locks, and keeps the server from forgetting what everybody has deleted: it ends when it
 * does nothing for too long, and when it is too old, whatever it does.
 */
async function endLongTransactions(connection: TenantConnection, prefix: string, seconds: number): Promise<number> {
  // `trx_started` is in the server's own time zone, as this session is. SET TIMESTAMP moves MySQL's TIME, and not this.
  const open = await connection.rows<Omit<Running, 'seconds'>>(
    `SELECT p.ID AS id, p.USER AS user FROM information_schema.INNODB_TRX t
       JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
      WHERE (p.COMMAND = 'Sleep' AND p.TIME > ?) OR UNIX_TIMESTAMP(t.trx_started) < UNIX_TIMESTAMP() - ?`,
    [seconds, seconds * patience],
  );
  const ours = open.filter(({ user }) => user.startsWith(prefix));
  for (const { id } of ours) await endConnection(connection, id);
  return ours.length;
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
