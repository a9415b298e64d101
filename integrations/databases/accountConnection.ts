import { createConnection, type RowDataPacket } from 'mysql2';
import { closeConnection } from './connection.ts';
import { RowTooLarge, TenantServerError } from './errors.ts';
import { boundRows } from './rowBound.ts';

const connectTimeoutMs = 10_000;
const statementTimeoutMs = 10 * 60_000;
const silenceMs = 2 * 60_000;

export interface AccountDetails {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
}

/** A connection of a tenant's account, or of a read-only account of Atrium. */
export interface AccountConnection {
  run(sql: string, values?: unknown[]): Promise<void>;
  /** Runs a prepared statement, whose values are not part of its text. */
  put(sql: string, values: (string | Buffer | null)[]): Promise<void>;
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Yields rows with their values as the server sends them. Throws {@link RowTooLarge} for a larger row. */
  stream(sql: string, maxRowBytes: number): AsyncGenerator<(Buffer | null)[]>;
}

/** Runs `work` over its own connection. Ends in time, or when the signal aborts. No error contains a statement. */
export async function withAccountConnection<T>(
  details: AccountDetails | { uri: string },
  signal: AbortSignal,
  work: (connection: AccountConnection) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const core = createConnection({ ...details, connectTimeout: connectTimeoutMs, charset: 'utf8mb4' });
  const connection = core.promise();
  const ending = new Ending();
  const abort = () => ending.end(signal.reason);
  // A statement with streamed rows does not get this error.
  core.on('error', (error) => ending.end(new TenantServerError(error)));
  signal.addEventListener('abort', abort, { once: true });
  const asked = <R>(answer: Promise<R>): Promise<R> => ending.orFail(answer);
  try {
    await asked(connection.connect());
    return await work({
      async run(sql, values) {
        await asked(connection.query({ sql, values, timeout: statementTimeoutMs }));
      },
      async put(sql, values) {
        await asked(connection.execute({ sql, values, timeout: statementTimeoutMs }));
        connection.unprepare(sql);
      },
      async rows<Row>(sql: string, values: unknown[] = []) {
        const [rows] = await asked(connection.query<RowDataPacket[]>({ sql, values, timeout: statementTimeoutMs }));
        return rows as unknown as Row[];
      },
      async *stream(sql, maxBytes) {
        const query = core.query({ sql, rowsAsArray: true, typeCast: (field) => field.buffer() });
        const bound = boundRows(core, { maxBytes, onTooLarge: (error) => rows.destroy(error) });
        query.on('result', bound.onRow);
        // One row is buffered here. All others wait on the server.
        const rows = query.stream({ highWaterMark: 1 });
        const iterator = rows[Symbol.asyncIterator]() as AsyncIterator<(Buffer | null)[]>;
        try {
          for (;;) {
            const silent = setTimeout(() => rows.destroy(new TenantServerError({ code: 'SILENT' })), silenceMs);
            const { done, value } = await asked(iterator.next()).finally(() => clearTimeout(silent));
            if (done === true) return;
            yield value;
          }
        } finally {
          bound.end();
          rows.destroy();
        }
      },
    });
  } finally {
    signal.removeEventListener('abort', abort);
    closeConnection(core);
  }
}

/**
 * Fails everything that waits for an answer when the connection ends. `Promise.race` against one promise would keep a
 * reaction, and with it a row, for every answer until then.
 */
class Ending {
  #reason: { error: unknown } | undefined;
  readonly #waiting = new Set<(error: unknown) => void>();

  end(error: unknown): void {
    this.#reason ??= { error };
    for (const reject of this.#waiting) reject(this.#reason.error);
    this.#waiting.clear();
  }

  orFail<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (pass: () => void) => {
        this.#waiting.delete(reject);
        pass();
      };
      answer.then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(asRefusal(error))),
      );
      if (this.#reason === undefined) this.#waiting.add(reject);
      else reject(this.#reason.error);
    });
  }
}

function asRefusal(error: unknown): unknown {
  return error instanceof RowTooLarge ? error : new TenantServerError(error);
}
