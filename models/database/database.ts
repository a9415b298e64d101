import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Connection as CallbackConnection } from 'mysql2';
import mysql, { type Pool, type PoolConnection } from 'mysql2/promise';
import { type QueryInterface, Sequelize, type Transaction, UniqueConstraintError } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { isRetriable, retry, retryDeadlockedStatements } from './collisions.ts';
import { Connections } from './connections.ts';
import { checkModels, checkPool, limitAcquisition, managerOf } from './poolChecks.ts';
import { execute } from './sql.ts';

/** The two ways to MySQL: Sequelize for models, and a plain pool for the few hot statements (the turn log). */
export interface Database extends AsyncDisposable {
  sequelize: Sequelize;
  pool: Pool;
  /** How long the server may be silent on a statement before its connection is dropped. */
  silenceMs: number;
  /** How long an unused connection is kept. */
  idleMs: number;
  /**
   * Rejects unless both pools answer within `timeoutMs` and the server takes writes. Connections that do not answer, or
   * that lead to a read-only server, are replaced.
   */
  check(timeoutMs: number): Promise<void>;
  /** Runs statements on a connection whose silence limit differs from `silenceMs`. */
  within<T>(connection: PoolConnection, silenceMs: number, work: () => Promise<T>): Promise<T>;
  /** The same database through pools of its own, whose statements may take hours. For migrations. */
  patient(): Database;
  /** Closes the pools, and cuts connections that do not end within a few seconds. Disposing does the same. */
  close(): Promise<void>;
}

/** Times are UTC with milliseconds everywhere: JavaScript dates cut microseconds, so the columns have none. */
const utc = '+00:00';

/**
 * A process that freezes inside a transaction keeps its row locks as long as the server keeps the connection: by
 * default 8 hours, while the process that takes over its work waits. So the server drops a connection that is silent
 * for this long, and the pools drop idle connections sooner. `transaction` and the turn log's writers retry until then.
 */
const connectionTimeoutSeconds = 30;
const longestIdleMs = 10_000;
const connectTimeoutMs = 5_000;
/** How long a statement waits for a free connection of its pool. */
const acquireTimeoutMs = 10_000;
/** Lock waits end after this share of the silence limit, so that they fail with their own error. */
const lockShare = 2 / 3;
/** Idle connections end after this share of the silence limit, so that they do not look frozen. */
const idleShare = 1 / 2;
/**
 * Prepared statements per connection, far more than there are. mysql2 makes room for all of them when it connects: its
 * default of 16,000 costs half a megabyte and a millisecond per connection.
 */
const maxPreparedStatements = 256;
/**
 * The SQL mode, whatever the server is set to: values that do not fit are errors, and backslashes escape in strings,
 * which the quoting of values relies on.
 */
const sqlMode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
const patientSilenceMs = 6 * 3_600_000;
const patientLockWaitSeconds = 120;
const closeGraceMs = 2_000;

/** A connection of the plain pool. */
type PlainConnection = CallbackConnection & { stream: Socket };

interface Patience {
  silenceMs: number;
  lockWaitSeconds: number;
}

/** How many connections a process may open. */
export function mostConnections(poolSize: number): number {
  return 2 * poolSize;
}

/** Opens the pools. Nothing connects until the first query. */
export function openDatabase(config: Pick<Config, 'database'>): Database {
  const { silenceMs } = config.database;
  const lockWaitSeconds = Math.max(1, Math.floor((silenceMs * lockShare) / 1_000));
  return openPools(config, { silenceMs, lockWaitSeconds });
}

/**
 * Session settings that each new connection is sent first. READ COMMITTED takes row locks without gap locks. Setting it
 * per transaction would cost a round trip each time.
 */
function sessionSettings({ lockWaitSeconds }: Patience): string[] {
  return [
    'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
    `SET SESSION wait_timeout = ${connectionTimeoutSeconds}, innodb_lock_wait_timeout = ${lockWaitSeconds}, lock_wait_timeout = ${lockWaitSeconds}, sql_mode = '${sqlMode}'`,
  ];
}

function openPools(config: Pick<Config, 'database'>, patience: Patience): Database {
  const { url, poolSize } = config.database;
  const idleMs = Math.min(longestIdleMs, patience.silenceMs * idleShare);
  const free = new Set<PlainConnection>();
  const connections = new Connections({
    silenceMs: patience.silenceMs,
    onSuspect() {
      for (const connection of free) connections.drop(connection);
    },
  });
  const settings = sessionSettings(patience);

  const sequelize: Sequelize = new Sequelize(url, {
    dialect: 'mysql',
    logging: false,
    timezone: utc,
    define: { underscored: true, timestamps: false, charset: 'utf8mb4' },
    pool: {
      max: poolSize,
      min: 0,
      idle: idleMs,
      acquire: acquireTimeoutMs,
      validate: (connection) => managerOf(sequelize).validate(connection) && connections.isTrusted(connection as never),
    },
    dialectOptions: {
      charset: 'utf8mb4',
      connectTimeout: connectTimeoutMs,
      supportBigNumbers: true,
      maxPreparedStatements,
      // A stack for each statement, in case it fails, costs as much as sending the statement.
      trace: false,
      stream: connections.dial,
    },
  });
  makeTransactionsPlain(sequelize);
  sequelize.addHook('afterConnect', async (connection: unknown) => {
    for (const setting of settings) await (connection as CallbackConnection).promise().query(setting);
  });

  const pool = mysql.createPool({
    uri: url,
    charset: 'utf8mb4_bin',
    timezone: 'Z',
    connectionLimit: poolSize,
    // Below the limit: at the limit, the pool would never look for idle connections.
    maxIdle: poolSize - 1,
    idleTimeout: idleMs,
    // An idle connection takes leave of the server, which otherwise logs an aborted connection each time.
    gracefulEnd: true,
    connectTimeout: connectTimeoutMs,
    supportBigNumbers: true,
    maxPreparedStatements,
    trace: false,
    stream: connections.dial,
  });
  limitAcquisition(pool.pool, connections, acquireTimeoutMs);
  pool.pool.on('connection', (connection) => {
    // Statements of one connection run in order, so these run before the first borrower's.
    for (const setting of settings) (connection as unknown as CallbackConnection).query(setting);
    (connection as unknown as PlainConnection).stream.once('close', () => free.delete(connection as never));
  });
  pool.pool.on('release', (connection) => free.add(connection as unknown as PlainConnection));
  pool.pool.on('acquire', (connection) => free.delete(connection as never));
  retryDeadlockedStatements(pool, sequelize);

  return {
    sequelize,
    pool,
    silenceMs: patience.silenceMs,
    idleMs,
    within: (connection, silenceMs, work) => connections.within(connection, silenceMs, work),
    patient: () => openPools(config, { silenceMs: patientSilenceMs, lockWaitSeconds: patientLockWaitSeconds }),
    async check(timeoutMs) {
      await Promise.all([checkPool(pool, connections, timeoutMs), checkModels(sequelize, connections, timeoutMs)]);
    },
    close,
    [Symbol.asyncDispose]: close,
  };

  async function close(): Promise<void> {
    const closing = Promise.allSettled([sequelize.close(), pool.end()]);
    const unended = new AbortController();
    const cut = async () => {
      await delay(closeGraceMs, undefined, { signal: unended.signal });
      connections.destroy();
      await delay(closeGraceMs, undefined, { signal: unended.signal });
    };
    await Promise.race([closing, cut().catch(() => closing)]).finally(() => unended.abort());
  }
}

/**
 * Runs `work` in one transaction (READ COMMITTED), up to 5 times if MySQL gives it up for a deadlock or a lock wait. So
 * `work` must do nothing that a rollback does not undo. With `retryDuplicates` it also retries after hitting a unique
 * key that another transaction had just taken: for work that reads first, and finds that row when it reads again.
 */
export async function transaction<T>(
  database: Database,
  work: (tx: Transaction) => Promise<T>,
  { retryDuplicates = false } = {},
): Promise<T> {
  return retry(
    () => database.sequelize.transaction(work),
    (error) => isRetriable(error) || (retryDuplicates && error instanceof UniqueConstraintError),
  );
}

type Step = (transaction: Transaction) => Promise<void>;

/**
 * Begins and ends transactions with plain statements. Through Sequelize's own way of running a query, the same
 * statements take this process longer than they take the server, three times a turn. Transactions are never nested.
 */
function makeTransactionsPlain(sequelize: Sequelize): void {
  const ways = sequelize.getQueryInterface() as QueryInterface & Record<string, Step>;
  ways.startTransaction = async (transaction) => {
    await execute(transaction, 'START TRANSACTION', []);
  };
  ways.commitTransaction = ending('commit', 'COMMIT');
  ways.rollbackTransaction = ending('rollback', 'ROLLBACK');
}

function ending(as: 'commit' | 'rollback', statement: string): Step {
  return async (transaction) => {
    const ended = execute(transaction, statement, []);
    // Sequelize refuses further statements of this transaction from here on.
    Object.assign(transaction, { finished: as });
    await ended;
  };
}
