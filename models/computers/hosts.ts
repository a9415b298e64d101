import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Computer, type ComputerDriver, type ComputerSource, driverOfBases } from './computer.ts';

/** A host's report about itself. */
export interface HostReport {
  id: string;
  /** Where other processes reach it. Null if only its own process can. */
  address: string | null;
  drivers: readonly ComputerDriver[];
  /** What its computers can have as their root file systems. */
  bases?: readonly ComputerSource[];
  cpuMilli: number;
  memoryMiB: number;
  maxRunning: number;
  /** Computers that name some of these run only on hosts that have all of them. */
  labels?: readonly string[];
  /** How it saves homes. With `tar`, it cannot make homes from what btrfs saved. */
  saveFormat?: 'btrfs' | 'tar';
}

export interface ComputerHostRow extends Omit<HostReport, 'drivers' | 'bases' | 'labels' | 'saveFormat'> {
  drivers: string;
  bases: string;
  labels: string | null;
  /** Null if it has not said it. */
  saveFormat: 'btrfs' | 'tar' | null;
  seenAt: Date;
  /** The operator wants no further computers there. */
  isCordoned: boolean | number;
}

const columns = `id, address, drivers, cpu_milli, memory_mib, max_running, labels, save_format, seen_at, is_cordoned,
  bases`;

/** Records that a host is there, and what it can do. */
export async function reportHost({ pool }: Pick<Database, 'pool'>, host: HostReport): Promise<void> {
  const { id, address, cpuMilli, memoryMiB, maxRunning, saveFormat = null } = host;
  const [drivers, bases, labels] = [host.drivers, host.bases ?? [], host.labels ?? []].map((list) => list.join(','));
  const sql = `INSERT INTO computer_hosts
       (id, address, drivers, bases, cpu_milli, memory_mib, max_running, labels, save_format, seen_at)
     VALUES (?)
     ON DUPLICATE KEY UPDATE address = VALUES(address), drivers = VALUES(drivers),
       bases = VALUES(bases), cpu_milli = VALUES(cpu_milli),
       memory_mib = VALUES(memory_mib), max_running = VALUES(max_running), labels = VALUES(labels),
       save_format = VALUES(save_format), seen_at = VALUES(seen_at)`;
  const row = [id, address, drivers, bases, cpuMilli, memoryMiB, maxRunning, labels, saveFormat, new Date()];
  await execute(pool, sql, [row]);
}

/** Forgets all addresses. A host gets no requests until it reports its address again. */
export async function forgetAddresses({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await execute(pool, 'UPDATE computer_hosts SET address = NULL');
}

/** Gives a host another id, together with everything on it. Safe to run again. */
export async function renameHost(database: Database, from: string, to: string): Promise<void> {
  await transaction(database, async (tx) => {
    await execute(tx, 'UPDATE computer_hosts SET id = ? WHERE id = ?', [to, from]);
    await execute(tx, 'UPDATE computers SET host_id = ? WHERE host_id = ?', [to, from]);
    await execute(tx, 'UPDATE computer_remains SET host_id = ? WHERE host_id = ?', [to, from]);
    await execute(tx, 'UPDATE home_saves SET host_id = ? WHERE host_id = ?', [to, from]);
  });
}

/** A host that shuts down cleanly takes no more computers. Running ones go on. */
export async function withdrawHost({ pool }: Pick<Database, 'pool'>, id: string): Promise<void> {
  await execute(pool, "UPDATE computer_hosts SET drivers = '' WHERE id = ?", [id]);
}

export async function findHost({ pool }: Pick<Database, 'pool'>, id: string): Promise<ComputerHostRow | undefined> {
  const [row] = await select<ComputerHostRow>(pool, `SELECT ${columns} FROM computer_hosts WHERE id = ?`, [id]);
  return row;
}

/** All known hosts, even lost ones. */
export async function listHosts({ pool }: Pick<Database, 'pool'>): Promise<ComputerHostRow[]> {
  return select<ComputerHostRow>(pool, `SELECT ${columns} FROM computer_hosts ORDER BY id`);
}

/** Whether a host has all of these labels. */
export function hasLabels(host: Pick<ComputerHostRow, 'labels'>, labels: readonly string[]): boolean {
  const own = labelsOf(host);
  return labels.every((label) => own.includes(label));
}

export function labelsOf({ labels }: Pick<ComputerHostRow, 'labels'>): string[] {
  return labels === null || labels === '' ? [] : labels.split(',');
}

/**
 * Throws 422 `DRIVER_NOT_OFFERED` unless a host has the driver now, and `LABELS_NOT_OFFERED` unless one has all labels.
 * The default driver is always accepted, because computers that name no driver use it too.
 */
export async function assertOffered(
  database: Pick<Database, 'pool'>,
  { driver, labels = [] }: Partial<Pick<Computer, 'driver' | 'labels'>>,
  config: Pick<Config, 'computers'>,
): Promise<void> {
  const isUsual = driver == null || driver === config.computers.driver;
  if (isUsual && labels.length === 0) return;
  const hosts = (await listHosts(database)).filter((host) => !isLost(host, config));
  const offered = hosts.flatMap(({ drivers }) => drivers.split(','));
  if (!isUsual && !offered.includes(driver)) {
    throw notOffered('driver', `no host here has ${driver}; there ${named(offered, config)}`);
  }
  if (!hosts.some((host) => hasLabels(host, labels))) {
    throw notOffered('labels', `no host here has ${labels.join(' and ')}`);
  }
}

function notOffered(field: 'driver' | 'labels', detail: string): DomainError {
  const whole = `The computer cannot run with ${field === 'driver' ? 'this driver' : 'these labels'}: ${detail}.`;
  const errors = [{ pointer: `/${field}`, detail }];
  return new DomainError('unprocessable', `${field.toUpperCase()}_NOT_OFFERED`, whole, { errors });
}

/**
 * Throws 503 `ENVIRONMENTS_UNAVAILABLE` unless a host can run computers that begin with this now, and 422
 * `DRIVER_NOT_OFFERED` if the computer wants another driver than such computers have.
 */
export async function requireBaseOffered(
  database: Pick<Database, 'pool'>,
  base: ComputerSource,
  config: Pick<Config, 'computers'>,
  wanted: ComputerDriver | null = null,
): Promise<void> {
  if (wanted !== null && wanted !== driverOfBases) {
    const detail = `computers with an environment run with ${driverOfBases} only`;
    throw new DomainError('unprocessable', 'DRIVER_NOT_OFFERED', `The computer cannot run with ${wanted}: ${detail}.`, {
      errors: [{ pointer: '/driver', detail }],
    });
  }
  const hosts = await listHosts(database);
  if (hosts.some((host) => !isLost(host, config) && hasBase(host, base))) return;
  throw noBase(base);
}

export function hasBase({ bases }: Pick<ComputerHostRow, 'bases'>, base: ComputerSource | null): boolean {
  return base === null || bases.split(',').includes(base);
}

/** What a host must have so that the computer can begin there. */
export function sourceOfFiles({ base, image, homeSaveId }: Pick<Computer, 'base' | 'image' | 'homeSaveId'>) {
  return base !== null && image !== null && homeSaveId === null ? 'image' : base;
}

export function noBase(base: ComputerSource | null): DomainError {
  const detail =
    base === 'image'
      ? 'No host here can take images from registries now: each lacks a program for it, or takes none. "atrium doctor" says on a host what is missing.'
      : 'No host here can run computers with a system of their own now. The operator finds the reason in the logs of the hosts.';
  return new DomainError('unavailable', 'ENVIRONMENTS_UNAVAILABLE', detail, { retryAfterSeconds: 60 });
}

/** Names the default driver first, and each driver once. */
function named(offered: readonly string[], { computers }: Pick<Config, 'computers'>): string {
  const names = [...new Set([computers.driver, ...offered.filter((name) => name !== '')])];
  return `${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}`;
}

/** Whether a host has been silent for too long. It gets no work then. */
export function isLost(host: Pick<ComputerHostRow, 'seenAt'> | undefined, { computers }: Pick<Config, 'computers'>) {
  return host === undefined || Date.now() - host.seenAt.getTime() > computers.hostLostMs;
}

/**
 * Whether orders for a host's computers are given up. Not while this process has been up for less time than a host may
 * be silent: both may have been away together, and the host may be back in a moment.
 */
export function isGivenUp(host: Pick<ComputerHostRow, 'seenAt'> | undefined, config: Pick<Config, 'computers'>) {
  if (host === undefined) return true; // it was removed
  return isLost(host, config) && process.uptime() * 1_000 > config.computers.hostLostMs;
}

export function hostLost(): DomainError {
  const detail =
    'The host with this computer’s home does not answer. Try again when it is back. If its home was never saved, recover with discardHome.';
  return new DomainError('unavailable', 'HOST_LOST', detail, { retryAfterSeconds: 30 });
}

/** Its row is gone: the operator has said that it will not come back. */
export function hostRemoved(): DomainError {
  const detail =
    'The operator has removed the host with this computer’s home, which was never saved. Recover it with discardHome, or delete it.';
  return new DomainError('conflict', 'HOST_REMOVED', detail);
}

/** The error for a request that needs this host now. Undefined if the host answers. */
export async function refusalOfHost(
  database: Pick<Database, 'pool'>,
  hostId: string,
  config: Pick<Config, 'computers'>,
): Promise<DomainError | undefined> {
  const host = await findHost(database, hostId);
  if (host === undefined) return hostRemoved();
  return isLost(host, config) ? hostLost() : undefined;
}
