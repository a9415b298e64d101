import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { isLost, listHosts } from './hosts.ts';

type Deps = { database: Database; config: Pick<Config, 'computers'> };

/** Whether a host gets further computers. Those that are there can still start. Throws 404. */
export async function cordonHost({ database }: Pick<Deps, 'database'>, hostId: string, isCordoned: boolean) {
  await transaction(database, async (tx) => {
    const rows = await select(tx, 'SELECT id FROM computer_hosts WHERE id = ? FOR UPDATE', [hostId]);
    if (rows.length === 0) throw notFound('host');
    await execute(tx, 'UPDATE computer_hosts SET is_cordoned = ? WHERE id = ?', [isCordoned, hostId]);
  });
}

/** How far a drain is: computers that still have to leave, and those whose homes could not be saved. */
export interface Draining {
  left: number;
  stuck: { id: string; code: string }[];
}

/**
 * Orders the computers of a host to move to other hosts, and cordons it. A computer that still has another order is
 * ordered by a later call. Throws 404, 409 `HOST_LOST` or `NO_OTHER_HOST`.
 */
export async function drainHost(deps: Deps, hostId: string): Promise<Draining> {
  const { database, config } = deps;
  const hosts = await listHosts(database);
  const own = hosts.find(({ id }) => id === hostId);
  if (own === undefined) throw notFound('host');
  if (isLost(own, config)) {
    const detail = 'This host does not answer. Its computers start elsewhere by themselves, or after a wake.';
    throw new DomainError('conflict', 'HOST_LOST', detail);
  }
  const takes = hosts.filter((host) => host.id !== hostId && !isLost(host, config) && !host.isCordoned);
  if (takes.length === 0) {
    const detail = 'No other host can take the computers. Start one, or uncordon one.';
    throw new DomainError('conflict', 'NO_OTHER_HOST', detail);
  }
  await cordonHost(deps, hostId, true);
  await execute(database.pool, 'UPDATE computers SET home_save_failed = NULL WHERE host_id = ?', [hostId]);
  return drainFurther(deps, hostId);
}

/** Orders those that had another order until now. One whose home could not be saved is not ordered again. */
export async function drainFurther({ database }: Pick<Deps, 'database'>, hostId: string): Promise<Draining> {
  await execute(
    database.pool,
    `UPDATE computers SET wish = 'move', wakes_after_move = 0, status_at = ?
      WHERE host_id = ? AND wish IS NULL AND deleted_at IS NULL AND home_save_failed IS NULL`,
    [new Date(), hostId],
  );
  const sql = 'SELECT id, wish, home_save_failed AS code FROM computers WHERE host_id = ? AND deleted_at IS NULL';
  const rows = await select<{ id: string; wish: string | null; code: string | null }>(database.pool, sql, [hostId]);
  const stuck = rows.flatMap(({ id, wish, code }) => (wish === null && code !== null ? [{ id, code }] : []));
  return { left: rows.length - stuck.length, stuck };
}

/** The computers of a host that were ordered to move since that time. */
export async function orderedMoves(
  { pool }: Pick<Database, 'pool'>,
  hostId: string,
  since: Date,
): Promise<{ id: string; spaceId: string }[]> {
  const sql = "SELECT id, space_id FROM computers WHERE host_id = ? AND wish = 'move' AND status_at > ?";
  return select(pool, sql, [hostId, since]);
}
