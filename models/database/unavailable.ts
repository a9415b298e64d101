import { DomainError } from '../../base/errors.ts';

/** Error codes that mean that the server is down or refuses connections, and not that a statement was wrong. */
const unavailableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT', // its socket is gone
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ER_CON_COUNT_ERROR',
  'ER_SERVER_SHUTDOWN',
  'ER_TOO_MANY_USER_CONNECTIONS',
]);

/** The statement waited too long for another transaction, or was ended for it. */
const busyCodes = new Set(['ER_LOCK_WAIT_TIMEOUT', 'ER_LOCK_DEADLOCK']);

/** The server, the transaction or the session takes reads only, for example after a handover to another server. */
const readsOnly = [1290, 1792, 1836];

/**
 * Errors of a running server that takes no statement, or not this one now. By number, since mysql2 has no names for
 * MariaDB's own.
 */
const refusals = new Set([
  1021, // the disk is full
  1114, // the table's space is full
  1053, // the server is shutting down
  1927, // the same on MariaDB, or an operator has ended the connection
  1317, // an operator has ended the statement
  ...readsOnly,
  3101, // a group of servers has not agreed on the commit
]);

/**
 * Whether a query failed because MySQL is down, frozen, restarting, full, busy or read-only: the same request may
 * succeed a little later.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name.startsWith('SequelizeConnection') || error.name === 'SequelizeHostNotFoundError') return true;
  const { code, errno, fatal, parent } = error as { code?: string; errno?: number; fatal?: boolean; parent?: unknown };
  // mysql2 sets `fatal`. A file or another service may fail with the same codes.
  if (fatal === true && code !== undefined && unavailableCodes.has(code)) return true;
  if (code !== undefined && busyCodes.has(code)) return true;
  if (errno !== undefined && refusals.has(errno)) return true;
  if (/closed state|Pool is closed|No connections available/.test(error.message)) return true;
  return parent !== undefined && isDatabaseUnavailable(parent);
}

/** Whether a server refused because it takes no writes. */
export function takesReadsOnly(error: unknown): boolean {
  return readsOnly.includes((error as { errno?: number }).errno ?? 0);
}

/** Codes that mean the same for a part other than the database. */
const awayCodes = new Set(['STORAGE_UNAVAILABLE', 'COMPUTER_CONNECTION_LOST']);

/** Whether one of our parts is away or refuses work: the database, the object store, the connection to a computer. */
export function isAway(error: unknown): boolean {
  return isDatabaseUnavailable(error) || (error instanceof DomainError && awayCodes.has(error.code));
}
