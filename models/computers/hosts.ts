import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import type { Database } from '../database.ts';
import { DomainError } from '../errors.ts';
import { select } from '../sql.ts';
import type { Computer, ComputerDriver } from './computer.ts';

/** What a host says of itself. */
export interface HostReport {
  id: string;
  /** Where other processes reach it; null where only its own does. */
  address: string | null;
  drivers: readonly ComputerDriver[];
  cpuMilli: number;
  memoryMiB: number;
  maxRunning: number;
}

export interface ComputerHostRow extends Omit<HostReport, 'drivers'> {
  drivers: string;
  seenAt: Date;
}

const columns = `id, address, drivers, cpu_milli AS cpuMilli, memory_mib AS memoryMiB, max_running AS maxRunning,
  seen_at AS seenAt`;

/** Notes that a host is there, and what it can do. */
export async function reportHost({ pool }: Pick<Database, 'pool'>, host: HostReport): Promise<void> {
  const { id, address, drivers, cpuMilli, memoryMiB, maxRunning } = host;
  await pool.query(
    `INSERT INTO computer_hosts (id, address, drivers, cpu_milli, memory_mib, max_running, seen_at) VALUES (?)
     ON DUPLICATE KEY UPDATE address = VALUES(address), drivers = VALUES(drivers), cpu_milli = VALUES(cpu_milli),
       memory_mib = VALUES(memory_mib), max_running = VALUES(max_running), seen_at = VALUES(seen_at)`,
    [[id, address, drivers.join(','), cpuMilli, memoryMiB, maxRunning, new Date()]],
  );
}

/** A host that stops in order takes no more work; what runs on it goes on. */
export async function withdrawHost({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await pool.query("UPDATE computer_hosts SET drivers = '' WHERE id = ?", [id]);
}

export async function findHost({ pool }: Pick<Database, 'pool'>, id: string): Promise<ComputerHostRow | undefined> {
  const [rows] = await pool.query(`SELECT ${columns} FROM computer_hosts WHERE id = ?`, [id]);
  return (rows as ComputerHostRow[])[0];
}

/** Every host that has ever been there. */
export async function listHosts({ pool }: Pick<Database, 'pool'>): Promise<ComputerHostRow[]> {
  const [rows] = await pool.query(`SELECT ${columns} FROM computer_hosts ORDER BY id`);
  return rows as ComputerHostRow[];
}

/**
 * Throws 422 `DRIVER_NOT_OFFERED` unless some host has it now. The one that computers have which name none is always
 * taken, as it is from those.
 */
export async function assertOffered(
  database: Pick<Database, 'pool'>,
  driver: ComputerDriver,
  config: Pick<Config, 'computers'>,
): Promise<void> {
  if (driver === config.computers.driver) return;
  const hosts = await listHosts(database);
  const offered = hosts.filter((host) => !isLost(host, config)).flatMap(({ drivers }) => drivers.split(','));
  if (offered.includes(driver)) return;
  throw new DomainError('unprocessable', 'DRIVER_NOT_OFFERED', 'The computer cannot be run here.', {
    errors: [{ pointer: '/driver', detail: `is one that no host here has: ${driver}` }],
  });
}

export function isLost(host: Pick<ComputerHostRow, 'seenAt'> | undefined, { computers }: Pick<Config, 'computers'>) {
  return host === undefined || Date.now() - host.seenAt.getTime() > computers.hostLostMs;
}

interface LoadedHost extends Pick<ComputerHostRow, 'id' | 'drivers' | 'memoryMiB' | 'maxRunning' | 'seenAt'> {
  running: number;
  usedMiB: number | string;
}

/**
 * The host that runs the computer: the one with its home, else the least loaded that can. Throws 503 `NO_HOST`, or
 * `HOST_LOST` where its home is on a host that does not answer, and 409 `HOST_REMOVED` on one that never will.
 */
export async function placeComputer(
  tx: Transaction,
  computer: Pick<Computer, 'id' | 'hostId'>,
  driver: ComputerDriver,
  config: Pick<Config, 'computers'>,
): Promise<string> {
  const hosts = await select<LoadedHost>(
    tx,
    `SELECT h.id, h.drivers, h.memory_mib AS memoryMiB, h.max_running AS maxRunning, h.seen_at AS seenAt,
       COUNT(c.id) AS running, COALESCE(SUM(COALESCE(c.memory_mib, ?)), 0) AS usedMiB
       FROM computer_hosts h
       LEFT JOIN computers c ON c.host_id = h.id AND c.status IN ('starting', 'running', 'paused', 'stopping') AND c.id <> ?
      GROUP BY h.id, h.drivers, h.memory_mib, h.max_running, h.seen_at ORDER BY h.id`,
    [config.computers.defaults.memoryMiB, computer.id],
  );
  if (computer.hostId !== null && !hosts.some(({ id }) => id === computer.hostId)) throw hostRemoved();
  const living = hosts.filter((host) => !isLost(host, config));
  const can = living.filter((host) => host.drivers.split(',').includes(driver));
  if (computer.hostId !== null) {
    if (!living.some(({ id }) => id === computer.hostId)) throw hostLost();
    if (can.some(({ id }) => id === computer.hostId)) return computer.hostId;
    throw noHost(`The host of this computer cannot run it with ${driver} now.`);
  }
  const [least] = can
    .filter((host) => host.running < host.maxRunning)
    .sort((a, b) => loadOf(a) - loadOf(b) || a.running - b.running);
  if (least === undefined) {
    throw noHost(can.length === 0 ? `No host here runs computers with ${driver}.` : 'Every host is full.');
  }
  return least.id;
}

function loadOf({ usedMiB, memoryMiB }: LoadedHost): number {
  return Number(usedMiB) / Math.max(1, memoryMiB);
}

function noHost(detail: string): DomainError {
  return new DomainError('unavailable', 'NO_HOST', detail, { retryAfterSeconds: 30 });
}

export function hostLost(): DomainError {
  const detail =
    'The host with this computer’s home does not answer. Try again when it is back, or recover with discardHome.';
  return new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 30 });
}

/** Its row is gone: the operator has said that it will not come back. */
export function hostRemoved(): DomainError {
  const detail =
    'The operator has removed the host with this computer’s home. Recover it with discardHome, or delete it.';
  return new DomainError('conflict', 'HOST_REMOVED', detail);
}

/** The refusal of what needs this host now; undefined where it answers. */
export async function refusalOfHost(
  database: Pick<Database, 'pool'>,
  hostId: string,
  config: Pick<Config, 'computers'>,
): Promise<DomainError | undefined> {
  const host = await findHost(database, hostId);
  if (host === undefined) return hostRemoved();
  return isLost(host, config) ? hostLost() : undefined;
}
