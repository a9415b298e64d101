import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import type { Database } from '../database/database.ts';
import { type Runner, select } from '../database/sql.ts';
import { type Computer, type ComputerSettings, limitsOf } from './computer.ts';
import { isActive } from './starting.ts';

type Settings = Pick<Config, 'computers'>;

/** What a space may have of computers, and what it has. */
export type Quotas = Config['computers']['perSpace'];

interface Refusal {
  code: string;
  detail: (limit: number, used: number) => string;
}

const refusals: Record<keyof Quotas, Refusal> = {
  computers: {
    code: 'TOO_MANY_COMPUTERS',
    detail: (limit, used) => `A space has at most ${limit} computers, and this one has ${used}. Delete one first.`,
  },
  running: {
    code: 'TOO_MANY_RUNNING',
    detail: (limit, used) =>
      `A space runs at most ${limit} computers at once, and this one runs ${used}. Stop one first.`,
  },
  memoryMiB: {
    code: 'TOO_MUCH_MEMORY',
    detail: (limit, used) =>
      `The running computers of a space have at most ${limit} MiB of memory, and those of this one have ${used}. Stop one first.`,
  },
  diskMiB: {
    code: 'TOO_MUCH_DISK',
    detail: (limit, used) =>
      `The computers of a space have at most ${limit} MiB of disk, and those of this one have ${used}. Delete one or make its disk smaller.`,
  },
  snapshots: {
    code: 'TOO_MANY_SNAPSHOTS',
    detail: (limit, used) => `A space has at most ${limit} snapshots, and this one has ${used}. Delete one first.`,
  },
};

/** Throws 409 with the limit and the use unless the space may have so much more. */
function requireRoom({ computers }: Settings, name: keyof Quotas, used: number, more: number): void {
  const limit = computers.perSpace[name];
  if (used + more <= limit) return;
  const { code, detail } = refusals[name];
  throw new DomainError('conflict', code, detail(limit, used), { quota: { limit, used } });
}

/** What a space has of each thing that its quotas limit. */
export async function useOf({ pool }: Pick<Database, 'pool'>, spaceId: string, config: Settings): Promise<Quotas> {
  return { ...(await computersIn(pool, spaceId, config)), snapshots: await snapshotsIn(pool, spaceId) };
}

async function computersIn(on: Runner, spaceId: string, config: Settings): Promise<Omit<Quotas, 'snapshots'>> {
  const sql = 'SELECT status, memory_mib, disk_mib FROM computers WHERE space_id = ? AND deleted_at IS NULL';
  const rows = await select<Pick<Computer, 'status' | 'memoryMiB' | 'diskMiB'>>(on, sql, [spaceId]);
  const use = { computers: rows.length, running: 0, memoryMiB: 0, diskMiB: 0 };
  for (const row of rows) {
    const { memoryMiB, diskMiB } = limitsOf(row, config);
    use.diskMiB += diskMiB;
    if (!isActive(row)) continue;
    use.running += 1;
    use.memoryMiB += memoryMiB;
  }
  return use;
}

async function snapshotsIn(on: Runner, spaceId: string): Promise<number> {
  const sql = 'SELECT COUNT(*) AS count FROM computer_snapshots WHERE space_id = ?';
  const [row] = await select<{ count: number }>(on, sql, [spaceId]);
  return row?.count ?? 0;
}

/**
 * Locks the space, so that its quotas hold for this many new computers with these settings. Returns `known` if a
 * computer has this id. Throws 404, 409 `TOO_MANY_COMPUTERS` or `TOO_MUCH_DISK`.
 */
export async function roomFor(
  tx: Transaction,
  { spaceId, id, count = 1 }: { spaceId: string; id: string; count?: number },
  settings: Partial<ComputerSettings>,
  config: Settings,
): Promise<'known' | 'room'> {
  await lockLivingSpace(tx, spaceId);
  const known = 'SELECT id FROM computers WHERE id = ? AND space_id = ? AND deleted_at IS NULL';
  if ((await select(tx, known, [id, spaceId])).length > 0) return 'known';
  await requireRoomForNew(tx, { spaceId, count }, settings, config);
  return 'room';
}

async function requireRoomForNew(
  tx: Transaction,
  { spaceId, count }: { spaceId: string; count: number },
  settings: Partial<ComputerSettings>,
  config: Settings,
): Promise<void> {
  const use = await computersIn(tx, spaceId, config);
  requireRoom(config, 'computers', use.computers, count);
  requireRoom(config, 'diskMiB', use.diskMiB, count * limitsOf(settings, config).diskMiB);
}

/**
 * For a new computer that serves an environment, with the operator's settings. Beside its quotas, a space may have one of
 * these for each environment that it may use. All that were made for this count, since their users can give them another
 * system, or delete the environment. A further one needs room like every computer. The space is locked. Throws 409
 * `TOO_MANY_COMPUTERS` or `TOO_MUCH_DISK`.
 */
export async function requireRoomToServe(tx: Transaction, spaceId: string, config: Settings): Promise<void> {
  const ofSpace = 'space_id = ? AND deleted_at IS NULL';
  const sql = `SELECT
    (SELECT COUNT(*) FROM computers WHERE ${ofSpace} AND serves_environment_id IS NOT NULL) AS serving,
    (SELECT COUNT(*) FROM environments WHERE ${ofSpace}) AS own,
    (SELECT COUNT(*) FROM environments WHERE shared_at IS NOT NULL AND deleted_at IS NULL AND space_id <> ?) AS shared`;
  const [found] = await select<{ serving: number; own: number; shared: number }>(tx, sql, [spaceId, spaceId, spaceId]);
  const { serving = 0, own = 0, shared = 0 } = found ?? {};
  if (serving >= own + shared) await requireRoomForNew(tx, { spaceId, count: 1 }, {}, config);
}

/** Throws 409 unless the computer may get these settings. A space that is over a quota may still shrink it. */
export async function requireRoomToChange(
  tx: Transaction,
  computer: Computer,
  changes: Partial<ComputerSettings>,
  config: Settings,
): Promise<void> {
  const before = limitsOf(computer, config);
  const after = limitsOf({ ...computer, ...changes }, config);
  const use = await computersIn(tx, computer.spaceId, config);
  for (const name of ['diskMiB', 'memoryMiB'] as const) {
    const more = after[name] - before[name];
    if (more > 0 && (name === 'diskMiB' || isActive(computer))) requireRoom(config, name, use[name], more);
  }
}

/** Throws 409 `TOO_MANY_RUNNING` or `TOO_MUCH_MEMORY` unless the computer may run too. Its space is locked. */
export async function requireRoomToRun(tx: Transaction, computer: Computer, config: Settings): Promise<void> {
  if (isActive(computer)) return;
  const { running, memoryMiB } = await computersIn(tx, computer.spaceId, config);
  requireRoom(config, 'running', running, 1);
  requireRoom(config, 'memoryMiB', memoryMiB, limitsOf(computer, config).memoryMiB);
}

/** Throws 409 `TOO_MANY_SNAPSHOTS` unless the space may have one more. The space is locked. */
export async function requireRoomForSnapshot(tx: Transaction, spaceId: string, config: Settings): Promise<void> {
  requireRoom(config, 'snapshots', await snapshotsIn(tx, spaceId), 1);
}
