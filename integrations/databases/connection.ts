import mysql, { type RowDataPacket } from 'mysql2/promise';
import { TenantServerError } from './errors.ts';

const connectTimeoutMs = 5_000;
const statementTimeoutMs = 30_000;
/** A tenant's open transaction can block changes to its database. The watchdog ends it, and the change is retried. */
const lockWaitSeconds = 5;

/** A connection of Atrium's own account. */
export interface TenantConnection {
  isMariaDb: boolean;
  version: string;
  run(sql: string, values?: unknown[]): Promise<void>;
  /**
   * Runs a statement that may take long. False if its time was up or the signal aborted: the server was told to end it,
   * and it has ended.
   */
  runFor(sql: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  rows<Row>(sql: string, values?: unknown[]): Promise<Row[]>;
}

export interface TenantAddress {
  url: string;
  /** The port for administrators. */
  adminPort: number | undefined;
}

/** Runs `work` over its own connection. Everything ends in time, and no error contains a statement. */
export async function withTenantConnection<T>(
  { url, adminPort }: TenantAddress,
  work: (connection: TenantConnection) => Promise<T>,
): Promise<T> {
  const connection = await mysql
    .createConnection({
      uri: url,
      connectTimeout: connectTimeoutMs,
      charset: 'utf8mb4',
      supportBigNumbers: true,
      ...(adminPort !== undefined && { port: adminPort }),
    })
    .catch((error: unknown) => {
      throw new TenantServerError(error);
    });
  // The next statement reports this error.
  connection.on('error', () => undefined);
  const query = async (sql: string, values: unknown[] = [], timeout = statementTimeoutMs) => {
    try {
      const [result] = await connection.query<RowDataPacket[]>({ sql, values, timeout });
      return result;
    } catch (error) {
      throw new TenantServerError(error);
    }
  };
  try {
    const [about] = await query('SELECT VERSION() AS version');
    const version = String(about?.version);
    const waits = `lock_wait_timeout = ${lockWaitSeconds}, innodb_lock_wait_timeout = ${lockWaitSeconds}`;
    await query(`SET SESSION time_zone = 'SYSTEM', ${waits}`);
    return await work({
      version,
      isMariaDb: version.includes('MariaDB'),
      async run(sql, values) {
        await query(sql, values);
      },
      async runFor(sql, timeoutMs, signal) {
        let isLate = false;
        const end = () => {
          isLate = true;
          const kill = `KILL QUERY ${Number(connection.threadId)}`;
          void withTenantConnection({ url, adminPort }, (other) => other.run(kill)).catch(() => undefined);
        };
        const timer = setTimeout(end, timeoutMs);
        signal?.addEventListener('abort', end, { once: true });
        try {
          await query(sql, [], timeoutMs + statementTimeoutMs);
        } catch (error) {
          if (!isLate || !(error instanceof TenantServerError) || (error.errno ?? 0) <= 0) throw error;
        } finally {
          clearTimeout(timer);
          signal?.removeEventListener('abort', end);
        }
        return !isLate;
      },
      rows: async <Row>(sql: string, values?: unknown[]) => (await query(sql, values)) as unknown as Row[],
    });
  } finally {
    closeConnection(connection);
  }
}

/**
 * Closes a connection without waiting for an answer. If it is idle, it tells the server first, which otherwise logs a
 * warning about an aborted connection.
 */
export function closeConnection(connection: { end(): unknown; destroy(): void }): void {
  connection.end();
  connection.destroy();
}
