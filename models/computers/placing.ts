import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { select } from '../database/sql.ts';
import { activeStatuses, type Computer, type ComputerDriver, limitsOf } from './computer.ts';
import {
  type ComputerHostRow,
  hasBase,
  hasLabels,
  hostLost,
  hostRemoved,
  isGivenUp,
  isLost,
  noBase,
  sourceOfFiles,
} from './hosts.ts';
import { findSave, type HomeSave } from './saveRows.ts';

interface Load {
  running: number;
  usedMiB: number | string;
}
type LoadedHost = Pick<
  ComputerHostRow,
  'id' | 'drivers' | 'bases' | 'memoryMiB' | 'maxRunning' | 'saveFormat' | 'labels' | 'seenAt' | 'isCordoned'
> &
  Load & {
    /** Whether the computer has left this host, which still has a home of it. */
    hasRemains: number;
  };
type Placed = Pick<Computer, 'id' | 'hostId' | 'memoryMiB' | 'base' | 'image' | 'homeSaveId' | 'labels'>;
type Settings = Pick<Config, 'computers'>;

/**
 * Chooses the host that runs the computer: the one with its home, else the least loaded that can. Locks hosts one by
 * one, so that no two computers take the last place. Throws 503 `NO_HOST`, even if only the host with its home has no
 * room, 503 `ENVIRONMENTS_UNAVAILABLE` if no host has its base, 503 `HOST_LOST` if that host does not answer, and 409 `HOST_REMOVED` if it was removed.
 */
export async function placeComputer(
  tx: Transaction,
  computer: Placed,
  driver: ComputerDriver,
  config: Settings,
): Promise<string> {
  if (computer.hostId === null) return placeElsewhere(tx, computer, driver, config);
  const hosts = await loadedHosts(tx, computer, config);
  const own = hosts.find(({ id }) => id === computer.hostId);
  if (own === undefined) throw hostRemoved();
  if (isGivenUp(own, config)) throw hostLost();
  if (!runs(own, driver)) throw noHost(`The host of this computer cannot run it with ${driver} now.`);
  if (!hasBase(own, computer.base)) throw noBase(computer.base);
  if (await takePlace(tx, own, computer, config)) return own.id;
  throw noHost(
    'The host with this computer’s home has no capacity for it now. Stop other computers, or try again later.',
  );
}

/** Chooses the least loaded host that can make the computer's home and run it, other than its own. */
async function placeElsewhere(
  tx: Transaction,
  computer: Placed,
  driver: ComputerDriver,
  config: Settings,
): Promise<string> {
  const hosts = await loadedHosts(tx, computer, config);
  const head = computer.homeSaveId === null ? undefined : await findSave(tx, computer.homeSaveId);
  const fits = (host: LoadedHost) => runs(host, driver) && hasLabels(host, computer.labels) && reads(host, head);
  const others = hosts.filter((host) => host.id !== computer.hostId && takesNew(host, config) && fits(host));
  const source = sourceOfFiles(computer);
  const can = others.filter((host) => hasBase(host, computer.base) && hasBase(host, source));
  if (others.length > 0 && can.length === 0) throw noBase(source);
  const byLoad = can.toSorted((a, b) => loadOf(a) - loadOf(b) || a.running - b.running);
  for (const host of byLoad.filter((one) => hasRoom(one, one, computer, config))) {
    if (await takePlace(tx, host, computer, config)) return host.id;
  }
  throw noHost(
    can.length === 0
      ? `No host here runs computers with ${[driver, ...computer.labels].join(' and ')}${head?.format === 'btrfs' ? ' and reads the saves of btrfs' : ''}.`
      : 'No host has capacity for the computer now. Stop other computers, or try again later.',
  );
}

/** Whether another host would take the computer. That host keeps the place until the transaction ends. */
export async function hasPlaceElsewhere(tx: Transaction, computer: Computer, config: Settings): Promise<boolean> {
  try {
    await placeElsewhere(tx, computer, limitsOf(computer, config).driver, config);
    return true;
  } catch (error) {
    if (error instanceof DomainError && ['NO_HOST', 'ENVIRONMENTS_UNAVAILABLE'].includes(error.code)) return false;
    throw error;
  }
}

/**
 * Whether the computer has to move before it starts, since its host lacks a label of it. Throws 503 `NO_HOST` if no
 * other host can run it.
 */
export async function mustMove(tx: Transaction, computer: Computer, config: Settings): Promise<boolean> {
  if (!(await isMisplaced(tx, computer, config))) return false;
  await placeElsewhere(tx, computer, limitsOf(computer, config).driver, config);
  return true;
}

/** Whether the host of the computer answers, but lacks a label of it: one of both has changed since. */
export async function isMisplaced(tx: Transaction, { hostId, labels }: Computer, config: Settings): Promise<boolean> {
  if (hostId === null || labels.length === 0) return false;
  const sql = 'SELECT labels, seen_at FROM computer_hosts WHERE id = ?';
  const [host] = await select<Pick<ComputerHostRow, 'labels' | 'seenAt'>>(tx, sql, [hostId]);
  return host !== undefined && !isGivenUp(host, config) && !hasLabels(host, labels);
}

function runs(host: LoadedHost, driver: ComputerDriver): boolean {
  return host.drivers.split(',').includes(driver);
}

/** Whether the host can make a home from the save. A host that does not say how it saves may be able to. */
function reads({ saveFormat }: LoadedHost, head: HomeSave | undefined): boolean {
  return head?.format !== 'btrfs' || saveFormat !== 'tar';
}

/** Not while the host has an old home of the computer: it would count as the computer's own. */
function takesNew(host: LoadedHost, config: Settings): boolean {
  return !isLost(host, config) && !host.isCordoned && !host.hasRemains;
}

function loadedHosts(tx: Transaction, computer: Placed, { computers }: Settings): Promise<LoadedHost[]> {
  return select<LoadedHost>(
    tx,
    `SELECT h.id, h.drivers, h.memory_mib, h.max_running, h.save_format, h.labels, h.seen_at, h.is_cordoned, h.bases,
       EXISTS (SELECT 1 FROM computer_remains r WHERE r.computer_id = ? AND r.host_id = h.id) AS hasRemains,
       COUNT(c.id) AS running, SUM(CASE WHEN c.id IS NULL THEN 0 ELSE COALESCE(c.memory_mib, ?) END) AS usedMiB
       FROM computer_hosts h
       LEFT JOIN computers c ON c.host_id = h.id AND c.status IN (?) AND c.id <> ?
      GROUP BY h.id, h.drivers, h.bases, h.memory_mib, h.max_running, h.save_format, h.labels, h.seen_at, h.is_cordoned
      ORDER BY h.id`,
    [computer.id, computers.defaults.memoryMiB, activeStatuses, computer.id],
  );
}

/** Counts again with the host locked: transactions that took places before are committed by then. */
async function takePlace(tx: Transaction, host: LoadedHost, computer: Placed, config: Settings): Promise<boolean> {
  await select(tx, 'SELECT id FROM computer_hosts WHERE id = ? FOR UPDATE', [host.id]);
  const [load] = await select<Load>(
    tx,
    `SELECT COUNT(*) AS running, COALESCE(SUM(COALESCE(memory_mib, ?)), 0) AS usedMiB
       FROM computers WHERE host_id = ? AND status IN (?) AND id <> ?`,
    [config.computers.defaults.memoryMiB, host.id, activeStatuses, computer.id],
  );
  return load !== undefined && hasRoom(host, load, computer, config);
}

function hasRoom(
  host: LoadedHost,
  { running, usedMiB }: Load,
  { memoryMiB }: Placed,
  { computers }: Settings,
): boolean {
  const needed = Number(usedMiB) + (memoryMiB ?? computers.defaults.memoryMiB);
  return running < host.maxRunning && needed <= host.memoryMiB * computers.overcommit;
}

function loadOf({ usedMiB, memoryMiB }: LoadedHost): number {
  return Number(usedMiB) / Math.max(1, memoryMiB);
}

function noHost(detail: string): DomainError {
  return new DomainError('unavailable', 'NO_HOST', detail, { retryAfterSeconds: 30 });
}
