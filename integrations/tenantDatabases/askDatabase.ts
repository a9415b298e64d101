import { isUtf8 } from 'node:buffer';
import { createConnection, type FieldPacket } from 'mysql2';
import { DomainError } from '../../models/errors.ts';
import type { AccountDetails } from './accountConnection.ts';

const connectTimeoutMs = 10_000;
const shownError = 1_000;
/** A block of statements, which MariaDB takes for one, could end the transaction in which nothing is changed. */
const reading = /^[\s(]*(select|show|explain|describe|desc|with|table|values)\b/i;

export interface AskOptions {
  /** Whether nothing may be changed by it, whatever its text does. */
  onlyReads: boolean;
  timeoutMs: number;
  maxRows: number;
  /** Of all values together. */
  maxCharacters: number;
  signal: AbortSignal;
}

/** What the server answers to one statement. */
export interface Answer {
  columns: string[];
  rows: (string | null)[][];
  /** There are more rows, or more of one. */
  isCut: boolean;
  /** Of a statement that has no rows. */
  changedRows: number | undefined;
}

/**
 * Sends one statement, over a connection of its own. What the server refuses is a DomainError `SQL_REFUSED` with the
 * server's words, which are for whoever has written the statement.
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
  // A statement whose rows come one by one is not told of it.
  core.on('error', () => ended.reject(unavailable()));
  const leave = () => ended.reject(overdue(options));
  signal.addEventListener('abort', leave, { once: true });
  try {
    signal.throwIfAborted();
    const connection = core.promise();
    const begin = async () => {
      await connection.connect();
      if (options.onlyReads) await connection.query('START TRANSACTION READ ONLY');
    };
    await Promise.race([begin().catch(unreachable), ended.promise]);
    return await Promise.race([answerTo(core, sql, options), ended.promise]);
  } finally {
    signal.removeEventListener('abort', leave);
    core.destroy(); // ends whatever it is still sending
  }
}

function answerTo(
  core: ReturnType<typeof createConnection>,
  sql: string,
  { maxRows, maxCharacters }: AskOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const answer: Answer = { columns: [], rows: [], isCut: false, changedRows: undefined };
    let left = maxCharacters;
    const asked = core.query({ sql, rowsAsArray: true, typeCast: (field) => field.buffer() });
    asked.on('fields', (fields: FieldPacket[] | undefined) => {
      answer.columns = (fields ?? []).map(({ name }) => name);
    });
    asked.on('result', (row: unknown) => {
      if (!Array.isArray(row)) {
        answer.changedRows = (row as { affectedRows?: number }).affectedRows ?? 0;
        return;
      }
      if (answer.isCut) return;
      if (answer.rows.length === maxRows) {
        answer.isCut = true;
        return resolve(answer); // the connection ends, and with it what is still to come
      }
      answer.rows.push((row as (Buffer | null)[]).map(shown));
      if (answer.isCut) resolve(answer);
    });
    asked.on('error', (error: Error & { sqlMessage?: string }) => reject(refusal(error)));
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

function refusal(error: { sqlMessage?: string; errno?: number }): DomainError {
  if (error.sqlMessage === undefined) return unavailable();
  return new DomainError('unprocessable', 'SQL_REFUSED', error.sqlMessage.slice(0, shownError));
}

function unreachable(): never {
  throw unavailable();
}

function unavailable(): DomainError {
  return new DomainError('unavailable', 'DATABASE_SERVER_UNAVAILABLE', 'The server for databases does not answer now.');
}

function overdue({ signal, timeoutMs }: AskOptions): unknown {
  if (signal.aborted) return signal.reason;
  return new DomainError('unprocessable', 'SQL_TIMED_OUT', `It took longer than ${timeoutMs / 1_000} seconds.`);
}
