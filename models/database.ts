import type { Connection as CallbackConnection } from 'mysql2';
import mysql, { type Pool } from 'mysql2/promise';
import { Sequelize, type Transaction, UniqueConstraintError } from 'sequelize';
import type { Config } from '../config/index.ts';

/** The two ways to MySQL: Sequelize for models, and a plain pool for the few hot statements (the turn log). */
export interface Database {
  sequelize: Sequelize;
  pool: Pool;
  close(): Promise<void>;
}

/** Times are UTC with milliseconds everywhere: JavaScript dates cut microseconds, so the columns have none. */
const utc = '+00:00';

/**
 * A process that freezes inside a transaction keeps its row locks for as long as the server keeps the connection: by default
 * 8 hours, and whoever takes its work over waits. So the server drops a connection that says nothing for this long,
 * well before a lock's waiters give up (50 s), and the pools give theirs up sooner.
 */
const connectionTimeoutSeconds = 30;
export const idleConnectionMs = 10_000;

/** What each connection is told first. Row locks without gap locks: naming it per transaction costs a round trip each time. */
const sessionSettings = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  `SET SESSION wait_timeout = ${connectionTimeoutSeconds}`,
];

/** Opens the pools. Nothing connects until the first query. */
export function openDatabase(config: Pick<Config, 'database'>): Database {
  const sequelize = new Sequelize(config.database.url, {
    dialect: 'mysql',
    logging: false,
    timezone: utc,
    define: { underscored: true, timestamps: false, charset: 'utf8mb4' },
    pool: { max: config.database.poolSize, min: 0, idle: idleConnectionMs, acquire: 10_000 },
    dialectOptions: { charset: 'utf8mb4', connectTimeout: 5_000, supportBigNumbers: true },
  });
  const pool = mysql.createPool({
    uri: config.database.url,
    charset: 'utf8mb4_bin',
    timezone: 'Z',
    connectionLimit: config.database.poolSize,
    // Below the limit: at it, the pool would never look for idle ones.
    maxIdle: config.database.poolSize - 1,
    idleTimeout: idleConnectionMs,
    connectTimeout: 5_000,
    enableKeepAlive: true,
    supportBigNumbers: true,
  });
  sequelize.addHook('afterConnect', async (connection: unknown) => {
    for (const setting of sessionSettings) await (connection as CallbackConnection).promise().query(setting);
  });
  pool.pool.on('connection', (connection) => {
    // Statements of one connection run in order, so these are done before its first borrower's.
    for (const setting of sessionSettings) (connection as unknown as CallbackConnection).query(setting);
  });
  return {
    sequelize,
    pool,
    async close() {
      await Promise.all([sequelize.close(), pool.end()]);
    },
  };
}

const transactionAttempts = 5;
const retriableErrorNumbers = new Set([
  1213, // deadlock: the server has rolled the whole transaction back
  1205, // lock wait timeout: only the statement was rolled back, Sequelize rolls back the rest
]);

/** Whether MySQL gave the transaction up for a reason that a second try may not meet. */
export function isRetriable(error: unknown): boolean {
  const parent = (error as { parent?: { errno?: number } }).parent ?? (error as { errno?: number });
  return retriableErrorNumbers.has(parent?.errno ?? 0);
}

/**
 * Runs `work` in one transaction (READ COMMITTED), and again, up to 5 times, when MySQL chose it as a deadlock's victim. So `work` must do
 * nothing that a rollback does not undo. With `retryDuplicates` also when it met a unique key that somebody else had just taken: for work
 * that looks first, and finds that row when it looks again.
 */
export async function transaction<T>(
  database: Database,
  work: (tx: Transaction) => Promise<T>,
  { retryDuplicates = false } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.sequelize.transaction(work);
    } catch (error) {
      const again = isRetriable(error) || (retryDuplicates && error instanceof UniqueConstraintError);
      if (attempt >= transactionAttempts || !again) throw error;
    }
  }
}
