import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { activeStatuses } from './computer.ts';
import { lockAnyComputer } from './computers.ts';
import { abandonFork, removeComputer, setError } from './ends.ts';
import { type ComputerHostRow, isLost, labelsOf, listHosts } from './hosts.ts';
import { leaveHost } from './leaving.ts';
import { change, isActive } from './starting.ts';

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

const dayMs = 86_400_000;
/** A host without computers is forgotten after this silence. If it comes back, it reports itself again. */
const silentMs = 7 * dayMs;
/** How long remains of deleted computers keep their silent host from being forgotten. */
const remainsMs = 90 * dayMs;

/** A host, how many computers have their homes there, how many of them run now, and the memory promised to these. */
export interface HostUse extends Omit<ComputerHostRow, 'bases' | 'labels' | 'isCordoned'> {
  computers: number;
  running: number;
  usedMiB: number;
  isLost: boolean;
  isCordoned: boolean;
  labels: string[];
  /** The root file systems that its computers can have. */
  bases: string[];
}

export async function hostsInUse({ database, config }: Deps): Promise<HostUse[]> {
  const rows = await select<Record<'id' | 'computers' | 'running' | 'usedMiB', string>>(
    database.pool,
    `SELECT host_id AS id, COUNT(*) AS computers, COALESCE(SUM(status IN (?)), 0) AS running,
       COALESCE(SUM(CASE WHEN status IN (?) THEN COALESCE(memory_mib, ?) END), 0) AS usedMiB
       FROM computers WHERE host_id IS NOT NULL GROUP BY host_id`,
    [['starting', 'running', 'paused'], activeStatuses, config.computers.defaults.memoryMiB],
  );
  const uses = new Map(rows.map(({ id, ...use }) => [id, use]));
  const hosts = await listHosts(database);
  return hosts.map(({ bases, labels, isCordoned, ...host }) => {
    const use = uses.get(host.id);
    const numbers = {
      computers: Number(use?.computers ?? 0),
      running: Number(use?.running ?? 0),
      usedMiB: Number(use?.usedMiB ?? 0),
    };
    const flags = { isLost: isLost(host, config), isCordoned: Boolean(isCordoned) };
    const lists = { bases: bases === '' ? [] : bases.split(','), labels: labelsOf({ labels }) };
    return { ...host, ...numbers, ...flags, ...lists };
  });
}

/**
 * For a host that will not come back: forgets it. Its computers go on elsewhere with their saved homes. Those whose homes
 * were never saved can be recovered with an empty home, or deleted. Returns how many of both there are. Throws 404, 409
 * `HOST_ANSWERS`.
 */
export async function removeHost(deps: Deps, hostId: string): Promise<{ computers: number; lost: number }> {
  const { database, config } = deps;
  await transaction(database, async (tx) => {
    const [host] = await select<Pick<ComputerHostRow, 'seenAt'>>(
      tx,
      'SELECT seen_at FROM computer_hosts WHERE id = ? FOR UPDATE',
      [hostId],
    );
    if (host === undefined) throw notFound('host');
    if (!isLost(host, config)) {
      const detail = 'This host still answers. Stop its process first, or its computers would keep running.';
      throw new DomainError('conflict', 'HOST_ANSWERS', detail);
    }
    // Its remains stay noted: if it does come back, its old homes must not count as the computers' own.
    await execute(tx, 'DELETE FROM computer_hosts WHERE id = ?', [hostId]);
  });
  // From here on their requests are refused with `HOST_REMOVED`, so updating each row may take its time or be repeated.
  const sql = 'SELECT id, home_save_id IS NULL AS isLost FROM computers WHERE host_id = ?';
  const rows = await select<{ id: string; isLost: number }>(database.pool, sql, [hostId]);
  for (const { id } of rows) await tellOf(deps, id, hostId);
  return { computers: rows.length, lost: rows.filter(({ isLost }) => isLost === 1).length };
}

async function tellOf(deps: Deps, computerId: string, hostId: string): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer?.hostId !== hostId) return;
    if (computer.wish === 'delete') await removeComputer(tx, computer, { isHomeGone: false });
    else if (computer.wish === 'fork') await abandonFork(tx, computer, 'HOST_REMOVED');
    // Its workflow brings it to another host.
    else if (
      computer.wish === 'restore' ||
      (computer.homeSaveId !== null && (isActive(computer) || computer.wish !== null))
    )
      return;
    else if (computer.homeSaveId !== null) {
      await leaveHost(deps, tx, computer);
      await change(tx, computer, { errorCode: null, errorDetail: null });
    } else await setError(deps, tx, computer, 'HOST_REMOVED');
  });
}

/** Deletes the rows of silent hosts without computers, and the remains noted for them. Returns how many hosts. */
export async function forgetSilentHosts({ pool }: Pick<Database, 'pool'>, now: Date): Promise<number> {
  const before = (ms: number) => new Date(now.getTime() - ms);
  const sql = `SELECT h.id FROM computer_hosts h WHERE h.seen_at < ?
       AND NOT EXISTS (SELECT 1 FROM computers c WHERE c.host_id = h.id)
       AND NOT EXISTS (SELECT 1 FROM computer_remains r WHERE r.host_id = h.id AND r.since >= ?) LIMIT 100`;
  const silent = await select(pool, sql, [before(silentMs), before(remainsMs)]);
  for (const { id } of silent) {
    await execute(pool, 'DELETE FROM computer_remains WHERE host_id = ?', [id]);
    // Not if it has just come back.
    await execute(pool, 'DELETE FROM computer_hosts WHERE id = ? AND seen_at < ?', [id, before(silentMs)]);
  }
  // A host that was removed may come back later, and must not use the homes that it still has.
  const orphans = `DELETE FROM computer_remains WHERE since < ?
       AND NOT EXISTS (SELECT 1 FROM computer_hosts h WHERE h.id = host_id)`;
  await execute(pool, orphans, [before(remainsMs)]);
  return silent.length;
}
