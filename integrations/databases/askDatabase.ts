import { isUtf8 } from 'node:buffer';
import { createConnection, type FieldPacket } from 'mysql2';
import { DomainError } from '../../base/errors.ts';
import type { AccountDetails } from './accountConnection.ts';
import { closeConnection } from './connection.ts';
import { boundRows, largestRowBytes } from './rowBound.ts';

const connectTimeoutMs = 10_000;
const shownError = 1_000;
/** Only these read. MariaDB takes a block as one statement, and a block could end the read-only transaction. */
const reading = /^[\s(]*(select|show|explain|describe|desc|with|table|values)\b/i;

export interface AskOptions {
  /** True if it must not change anything, whatever its text does. */
  onlyReads: boolean;
  timeoutMs: number;
  maxRows: number;
  /** The maximum for all values together. */
  maxCharacters: number;
  signal: AbortSignal;
}

/** The server's answer to one statement. */
export interface Answer {
  columns: string[];
  rows: (string | null)[][];
  /** There are more rows, or a value was cut. */
  isCut: boolean;
  /** Set for a statement without rows. */
  changedRows: number | undefined;
}

/**
 * Sends one statement over its own connection. Throws `SQL_REFUSED` with the server's message, which is meant for the
 * author of the statement. Without an answer, throws `SQL_TIMED_OUT` or `SQL_INTERRUPTED` if the statement only reads,
 * else `SQL_OUTCOME_UNKNOWN`: the server may have done it, or still do it.
 */
export async function askDatabase(details: AccountDetails, sql: string, options: AskOptions): Promise<Answer> {
  if (options.onlyReads && !reading.test(sql)) {
    const detail = 'Only SELECT, SHOW, EXPLAIN, DESCRIBE, WITH, TABLE and VALUES read. No comment comes before them.';
    throw new DomainError('unprocessable', 'SQL_REFUSED', detail);
  }
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]);
  const core = createConnection({ ...details, connectTimeout: connectTimeoutMs, charset: 'utf8mb4' });
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  let isSent = false;
  // A statement with streamed rows does not get this error.
  core.on('error', () => ended.reject(isSent ? interrupted(options) : unavailable()));
  const leave = () => ended.reject(overdue(options, isSent));
  signal.addEventListener('abort', leave, { once: true });
  try {
    signal.throwIfAborted();
    const connection = core.promise();
    const begin = async () => {
      await connection.connect();
      if (options.onlyReads) await connection.query('START TRANSACTION READ ONLY');
    };
    await Promise.race([begin().catch(unreachable), ended.promise]);
    isSent = true;
    return await Promise.race([answerTo(core, sql, options), ended.promise]);
  } finally {
    signal.removeEventListener('abort', leave);
    closeConnection(core); // also ends a transfer that is still under way
  }
}

function answerTo(core: ReturnType<typeof createConnection>, sql: string, options: AskOptions): Promise<Answer> {
  const { maxRows, maxCharacters } = options;
  return new Promise((resolve, reject) => {
    const answer: Answer = { columns: [], rows: [], isCut: false, changedRows: undefined };
    let left = maxCharacters;
    const asked = core.query({ sql, rowsAsArray: true, typeCast: (field) => field.buffer() });
    const bound = boundRows(core, { maxBytes: largestRowBytes, onTooLarge: () => reject(tooLarge(options)) });
    asked.on('fields', (fields: FieldPacket[] | undefined) => {
      answer.columns = (fields ?? []).map(({ name }) => name);
    });
    asked.on('result', (row: unknown) => {
      bound.onRow();
      if (!Array.isArray(row)) {
        answer.changedRows = (row as { affectedRows?: number }).affectedRows ?? 0;
        return;
      }
      if (answer.isCut) return;
      if (answer.rows.length === maxRows) {
        answer.isCut = true;
        return resolve(answer); // the connection ends, and the other rows with it
      }
      answer.rows.push((row as (Buffer | null)[]).map(shown));
      if (answer.isCut) resolve(answer);
    });
    asked.on('error', (error: Error & { sqlMessage?: string }) => reject(refusal(error, options)));
    asked.on('end', () => resolve(answer));

    function shown(value: Buffer | null): string | null {
      if (value === null) return null;
      const text = isUtf8(value) ? value.toString('utf8') : `0x${value.toString('hex')}`;
      if (text.length > left) answer.isCut = true;
      const part = text.slice(0, Math.max(0, left));
      left -= part.length;
      return part;
    }
  });
}

function refusal(error: { sqlMessage?: string; errno?: number }, options: AskOptions): DomainError {
  if (error.sqlMessage === undefined) return interrupted(options);
  return new DomainError('unprocessable', 'SQL_REFUSED', error.sqlMessage.slice(0, shownError));
}

function tooLarge({ onlyReads }: AskOptions): DomainError {
  const why = `A row of the answer is larger than ${largestRowBytes / 1_048_576} MiB.`;
  if (!onlyReads) return unknownOutcome(why);
  const detail = `${why} Ask for fewer columns, or for parts of them.`;
  return new DomainError('unprocessable', 'ROW_TOO_LARGE', detail);
}

function unreachable(): never {
  throw unavailable();
}

function unavailable(): DomainError {
  return new DomainError('unavailable', 'DATABASE_SERVER_UNAVAILABLE', 'The server for databases does not answer now.');
}

/** The server ended the connection during the statement. Not `unavailable`, because a retry would end the same way. */
function interrupted({ onlyReads }: AskOptions): DomainError {
  const why = 'The server has ended the connection while the statement ran.';
  return onlyReads ? new DomainError('unprocessable', 'SQL_INTERRUPTED', why) : unknownOutcome(why);
}

function overdue({ signal, timeoutMs, onlyReads }: AskOptions, isSent: boolean): unknown {
  if (signal.aborted) return signal.reason;
  if (!isSent) return unavailable();
  const why = `It took longer than ${timeoutMs / 1_000} seconds.`;
  return onlyReads ? new DomainError('unprocessable', 'SQL_TIMED_OUT', why) : unknownOutcome(why);
}

function unknownOutcome(why: string): DomainError {
  const detail = `${why} All or part of it may have been done: look before you do it again.`;
  return new DomainError('unprocessable', 'SQL_OUTCOME_UNKNOWN', detail);
}
