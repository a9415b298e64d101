import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, type Runner, select } from '../database/sql.ts';
import type { Computer } from './computer.ts';

/** A computer, and a host that has a home of it without being its host. */
export interface Remains {
  computerId: string;
  hostId: string;
}

/** Notes that a host that the computer leaves must remove its home when the host is back. */
export async function addRemains(tx: Transaction, { id, hostId }: Pick<Computer, 'id' | 'hostId'>): Promise<void> {
  if (hostId === null) return;
  const row = [id, hostId, new Date()];
  await execute(tx, 'INSERT IGNORE INTO computer_remains (computer_id, host_id, since) VALUES (?)', [row]);
}

/** The homes that this host still has to remove, and whether their computers still exist elsewhere. */
export async function remainsOn(
  { pool }: Pick<Database, 'pool'>,
  hostId: string,
): Promise<{ computerId: string; isAlive: boolean }[]> {
  const sql = `SELECT r.computer_id, c.id IS NOT NULL AS isAlive FROM computer_remains r
      LEFT JOIN computers c ON c.id = r.computer_id AND c.deleted_at IS NULL
     WHERE r.host_id = ? ORDER BY r.since LIMIT 100`;
  const rows = await select<{ computerId: string; isAlive: number }>(pool, sql, [hostId]);
  return rows.map(({ computerId, isAlive }) => ({ computerId, isAlive: isAlive === 1 }));
}

/** Since when a host has a home to remove. Undefined if it has none. */
export async function remainsSince(on: Runner, { computerId, hostId }: Remains): Promise<Date | undefined> {
  const sql = 'SELECT since FROM computer_remains WHERE computer_id = ? AND host_id = ?';
  const [row] = await select<{ since: Date }>(on, sql, [computerId, hostId]);
  return row?.since;
}

export async function forgetRemains({ pool }: Pick<Database, 'pool'>, { computerId, hostId }: Remains): Promise<void> {
  await execute(pool, 'DELETE FROM computer_remains WHERE host_id = ? AND computer_id = ?', [hostId, computerId]);
}
