import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'mysql2/promise';
import type { Sequelize } from 'sequelize';

const deadlock = 1213;
const lockWaitTimeout = 1205;

const attempts = 5;
/** The longest pause before the second attempt. Each further attempt adds as much. */
const pauseMs = 20;

/**
 * Whether MySQL gave up a transaction for a reason that a retry may not meet. After a deadlock the server has rolled
 * back the whole transaction. After a lock wait timeout it has rolled back only the statement, and Sequelize the rest.
 */
export function isRetriable(error: unknown): boolean {
  return [deadlock, lockWaitTimeout].includes(errorNumberOf(error));
}

/** Runs `work` up to five times while `isToRetry` accepts its error. Random pauses keep two callers apart. */
export async function retry<T>(work: () => Promise<T>, isToRetry: (error: unknown) => boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= attempts || !isToRetry(error)) throw error;
      await delay(Math.random() * pauseMs * attempt);
    }
  }
}

/**
 * Makes the pool and Sequelize retry a statement that MySQL chose as a deadlock's victim. This covers only statements
 * outside of transactions, which the server has undone as a whole. A lock wait timeout is not retried, since the
 * statement has already waited as long as it may.
 */
export function retryDeadlockedStatements(pool: Pool, sequelize: Sequelize): void {
  const isDeadlock = (error: unknown) => errorNumberOf(error) === deadlock;
  type Statement = (...args: unknown[]) => Promise<unknown>;
  for (const way of ['query', 'execute'] as const) {
    const once = pool[way].bind(pool) as Statement;
    Object.assign(pool, { [way]: (...args: unknown[]) => retry(() => once(...args), isDeadlock) });
  }
  const once = sequelize.query.bind(sequelize) as Statement;
  const query = (sql: unknown, options?: { transaction?: unknown }) =>
    options?.transaction == null ? retry(() => once(sql, options), isDeadlock) : once(sql, options);
  Object.assign(sequelize, { query });
}

/** MySQL's number of an error, from the pool or from Sequelize. 0 for any other error. */
export function errorNumberOf(error: unknown): number {
  const { parent, errno } = error as { parent?: { errno?: number }; errno?: number };
  return parent?.errno ?? errno ?? 0;
}
