import { notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

export type ComputerStatus = 'created' | 'starting' | 'running' | 'paused' | 'stopping' | 'stopped' | 'error';

/** Statuses in which a computer counts against its space's limit, and takes all the memory that it may use. */
export const activeStatuses = [
  'starting',
  'running',
  'paused',
  'stopping',
] as const satisfies readonly ComputerStatus[];

/** An order for a computer that is still to be carried out. */
export type ComputerWish = 'wake' | 'stop' | 'pause' | 'fork' | 'delete' | 'move' | 'restore';

export type ComputerDriver = 'bubblewrap' | 'gvisor' | 'docker';

/** A root file system that a computer can have of its own. */
export type ComputerBase = 'debian';

/** What a computer begins with while it has no files: a base, or an image of a registry. */
export type ComputerSource = ComputerBase | 'image';

/** The driver of computers with a base. Others cannot run them. */
export const driverOfBases: ComputerDriver = 'bubblewrap';

/** What a computer may use and how it runs. Null: the operator's default. */
export interface ComputerSettings {
  driver: ComputerDriver | null;
  cpuMilli: number | null;
  memoryMiB: number | null;
  diskMiB: number | null;
  idleMinutes: number | null;
}

/** A row of `computers`. */
export interface Computer extends ComputerSettings {
  id: string;
  spaceId: string;
  /** The space’s id, if this is its default computer. */
  defaultOf: string | null;
  name: string;
  /** It runs only on hosts that have all of these. */
  labels: string[];
  envNames: string[];
  status: ComputerStatus;
  statusAt: Date;
  wish: ComputerWish | null;
  /** Why it is in `error`, or was stopped without an order. */
  errorCode: string | null;
  errorDetail: string | null;
  /** Counts its starts. */
  generation: number;
  /** Counts the ends of its steps, and the restores that were asked for. The end of a step names it. */
  stepNumber: number;
  /** The host that has its home. Null if it was never used. */
  hostId: string | null;
  forkedFrom: string | null;
  createdBy: string | null;
  createdAt: Date;
  startedAt: Date | null;
  /** When its host last reported that it runs. */
  aliveAt: Date | null;
  /** When it was last active, as its host reports. */
  activeAt: Date | null;
  /** When a request last used it. */
  usedAt: Date | null;
  /** How many processes its host counts on it. */
  processes: number;
  /** How long this generation ran before `startedAt`. Paused time does not count. */
  ranMs: number;
  /** How many minutes of this generation are in the ledger. */
  minutesCharged: number;
  deletedAt: Date | null;
  /** Its head: the save that its home equals as of `homeSavedAt`. */
  homeSaveId: string | null;
  homeSavedAt: Date | null;
  /** Why its home cannot be saved now. */
  homeSaveFailed: string | null;
  /** Whether it starts again after the move or the restore that it wishes. */
  wakesAfterMove: boolean;
  /** With the wish `restore`: the snapshot whose home it gets, or the version of an environment. */
  restoresId: string | null;
  /** Whether its host may have given it the system that it wishes, beside the home that it keeps. */
  restoreBegan: boolean;
  /** Null: it sees the system of its host, and its volume is only its home. */
  base: ComputerBase | null;
  /** With a base: the image whose files it begins with, by its digest, while it has no save. */
  image: string | null;
  /** The version of an environment that it was made from. */
  environmentVersionId: string | null;
  /** Whether the drive of its space is in its home. */
  hasDrive: boolean;
  /** What its host last said of the drive in it. Null before it first ran. */
  driveReport: DriveReport | null;
}

/** What a host says of the drive in a computer that runs. */
export interface DriveReport {
  /** Null: the host cannot give it the drive. `error` says why. */
  access: DriveAccess | null;
  /** Files that programs have written and that are not in the drive yet. */
  pendingFiles: number;
  error: string | null;
}

/** What programs on a computer may do in the drive. */
export type DriveAccess = 'write' | 'read' | 'none';

export const computerColumns = `id, space_id, default_of, name, driver, cpu_milli, memory_mib, disk_mib, idle_minutes,
  labels, env_names, status, status_at, wish, error_code, error_detail, generation, step_number, host_id,
  forked_from, created_by, created_at, started_at, alive_at, active_at, used_at, processes, ran_ms, minutes_charged,
  deleted_at, home_save_id, home_saved_at, home_save_failed, wakes_after_move, restores_id, restore_began,
  base, image, environment_version_id, has_drive, drive_report`;

/** A computer from the row that `computerColumns` selects. */
export function computerOf(row: object): Computer {
  const computer = row as Omit<Computer, 'labels' | 'envNames' | 'ranMs' | 'driveReport'> & {
    labels: string | null;
    envNames: string;
    ranMs: number | string;
    driveReport: string | null;
  };
  return {
    ...computer,
    labels: computer.labels === null ? [] : (JSON.parse(computer.labels) as string[]),
    envNames: JSON.parse(computer.envNames) as string[],
    ranMs: Number(computer.ranMs),
    wakesAfterMove: Boolean(computer.wakesAfterMove),
    restoreBegan: Boolean(computer.restoreBegan),
    hasDrive: Boolean(computer.hasDrive),
    driveReport: computer.driveReport === null ? null : (JSON.parse(computer.driveReport) as DriveReport),
  };
}

/** A computer of the space that is not deleted. Throws 404. */
export async function getComputer(database: Database, spaceId: string, computerId: string): Promise<Computer> {
  const computer = await findComputer(database, computerId);
  if (computer === undefined || computer.spaceId !== spaceId || computer.deletedAt !== null) throw notFound('computer');
  return computer;
}

/** A computer, even if it is being deleted. */
export async function findComputer({ pool }: Pick<Database, 'pool'>, id: string): Promise<Computer | undefined> {
  const [row] = await select<object>(pool, `SELECT ${computerColumns} FROM computers WHERE id = ?`, [id]);
  return row && computerOf(row);
}

/** A space’s computers, oldest first. */
export async function listComputers(database: Database, spaceId: string, page: PageRequest): Promise<Page<Computer>> {
  const sql = `SELECT ${computerColumns} FROM computers WHERE space_id = ? AND deleted_at IS NULL`;
  return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc', read: computerOf });
}

/**
 * What a computer may use, and its driver: its own settings or the operator's defaults, but never more than the operator
 * allows now.
 */
export function limitsOf(
  computer: Partial<ComputerSettings & Pick<Computer, 'base'>>,
  { computers }: Pick<Config, 'computers'>,
) {
  const { defaults, most } = computers;
  const within = (name: 'cpuMilli' | 'memoryMiB' | 'diskMiB' | 'idleMinutes') =>
    Math.min(computer[name] ?? defaults[name], most[name]);
  return {
    driver: computer.base == null ? (computer.driver ?? computers.driver) : driverOfBases,
    cpuMilli: within('cpuMilli'),
    memoryMiB: within('memoryMiB'),
    diskMiB: within('diskMiB'),
    idleMinutes: within('idleMinutes'),
  };
}

/** Computers that have, or should have, a running workflow. */
export const restlessComputers = waitingIn<Waiting & Pick<Computer, 'spaceId' | 'wish'>>({
  table: 'computers',
  columns: ['space_id', 'wish'],
  where: "(status IN ('starting', 'running', 'paused', 'stopping') OR wish IS NOT NULL)",
  time: 'status_at',
});
