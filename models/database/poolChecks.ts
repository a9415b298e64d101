import type { Connection as CallbackConnection, Pool as CallbackPool, PoolConnection } from 'mysql2';
import type { Pool } from 'mysql2/promise';
import type { Sequelize } from 'sequelize';
import { type Connections, silent } from './connections.ts';
import { takesReadsOnly } from './unavailable.ts';

/** The parts of Sequelize's connection manager that its types leave out. */
interface ConnectionManager {
  validate(connection: unknown): boolean;
  getConnection(options: object): Promise<CallbackConnection>;
  releaseConnection(connection: CallbackConnection): void;
}

export function managerOf(sequelize: Sequelize): ConnectionManager {
  return (sequelize as unknown as { connectionManager: ConnectionManager }).connectionManager;
}

/** Adds a time limit and a trust check: mysql2's pool waits without end and hands on any returned connection. */
export function limitAcquisition(pool: CallbackPool, connections: Connections, timeoutMs: number): void {
  type Callback = Parameters<CallbackPool['getConnection']>[0];
  const acquire = pool.getConnection.bind(pool) as (callback: Callback) => void;
  const acquireTrusted = (callback: Callback) =>
    acquire((error, connection: PoolConnection | undefined) => {
      if (connection === undefined || connections.isTrusted(connection)) {
        return callback(error, connection as PoolConnection);
      }
      connections.drop(connection);
      acquireTrusted(callback);
    });
  pool.getConnection = (callback: Callback) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      callback(silent('No connection to the database came free in time.') as never, undefined as never);
    }, timeoutMs);
    acquireTrusted((error, connection: PoolConnection | undefined) => {
      clearTimeout(timer);
      if (!isLate) callback(error, connection as PoolConnection);
      else connection?.release();
    });
  };
}

/**
 * Asks the server through the plain pool, with a statement that changes nothing and that a read-only server refuses.
 * Such a server has handed over to another one, so its connections are distrusted. New connections lead to where writes
 * are taken.
 */
export async function checkPool(pool: Pool, connections: Connections, timeoutMs: number): Promise<void> {
  const connection = await pool.getConnection();
  try {
    const write = 'UPDATE drives SET used_bytes = used_bytes WHERE FALSE';
    await connections.within(connection, timeoutMs, () => connection.query(write));
  } catch (error) {
    if (takesReadsOnly(error)) connections.distrust();
    throw error;
  } finally {
    connection.release();
  }
}

/** Asks the server through Sequelize's pool. */
export async function checkModels(sequelize: Sequelize, connections: Connections, timeoutMs: number): Promise<void> {
  const manager = managerOf(sequelize);
  const connection = await manager.getConnection({});
  try {
    await connections.within(connection, timeoutMs, () => connection.promise().query('SELECT 1'));
  } finally {
    // A failed connection is detected before it is used again.
    manager.releaseConnection(connection);
  }
}
