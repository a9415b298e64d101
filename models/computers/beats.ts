import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { chargeAll } from './charging.ts';
import { activeStatuses, type Computer, computerColumns, computerOf } from './computer.ts';
import { lockAnyComputer } from './computers.ts';
import { setError, stopped } from './ends.ts';
import { detailOf } from './reasons.ts';
import { change, isActive } from './starting.ts';

/** A host's report about a computer that it runs. */
export interface Alive {
  computerId: string;
  generation: number;
  state: 'running' | 'paused';
  runningProcesses: number;
  lastActiveAt: Date;
}

/** What a host does about a reported computer. With a `spaceId`, its row has changed, so its workflow must look. */
export type Verdict = 'fine' | 'stop' | { spaceId: string };

type Deps = { database: Database; config: Pick<Config, 'billing' | 'computers'> };

/** The computers that should run on a host. */
export async function activeOn({ pool }: Pick<Database, 'pool'>, hostId: string): Promise<Computer[]> {
  const sql = `SELECT ${computerColumns} FROM computers WHERE host_id = ? AND status IN ('running', 'paused')`;
  const rows = await select<object>(pool, sql, [hostId]);
  return rows.map(computerOf);
}

/** Those of these computers that should go on running on this host. One that counts as lost goes on too. */
export async function stillOn({ pool }: Pick<Database, 'pool'>, hostId: string, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const sql = "SELECT id FROM computers WHERE id IN (?) AND host_id = ? AND status IN ('running', 'error')";
  const rows = await select<{ id: string }>(pool, sql, [ids, hostId]);
  return rows.map(({ id }) => id);
}

/**
 * Notes that a computer ran at that time. Returns `stop` if it should not run: it was given up meanwhile, or is
 * unknown. A computer that counted as lost with its host gets its state back, and so does one that its row calls paused
 * although it runs, or the other way round.
 */
export async function noteAlive({ database }: Deps, hostId: string, alive: Alive, at: Date): Promise<Verdict> {
  const { computerId, generation, runningProcesses, lastActiveAt, state } = alive;
  return transaction(database, async (tx): Promise<Verdict> => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer?.hostId !== hostId) return 'stop';
    const { status, wish } = computer;
    // A step is under way and records its own result.
    if (status === 'starting' || status === 'stopping' || wish !== null) return 'fine';
    if (computer.generation !== generation) return 'stop';
    const seen = { aliveAt: at, activeAt: lastActiveAt, processes: runningProcesses };
    if (status === 'running' && state === 'running') {
      await change(tx, computer, seen);
      return 'fine';
    }
    if (status === 'paused') {
      // The host may have been asked before the pause.
      if (state === 'paused' || computer.statusAt >= at) return 'fine';
      await change(tx, computer, { status: 'running', startedAt: at, ...seen });
      return { spaceId: computer.spaceId };
    }
    if (status === 'running') {
      // The host has paused it, although the pause was recorded as failed.
      const ranMs = computer.ranMs + Math.max(0, at.getTime() - (computer.startedAt ?? at).getTime());
      await change(tx, computer, { status: 'paused', ranMs, startedAt: null });
      return { spaceId: computer.spaceId };
    }
    if (status !== 'error' || !['HOST_LOST', 'HOST_REMOVED'].includes(computer.errorCode ?? '')) return 'stop';
    const back = { errorCode: null, errorDetail: null, ...seen };
    await change(tx, computer, { status: state, startedAt: state === 'running' ? at : null, ...back });
    return { spaceId: computer.spaceId };
  });
}

/** Notes that a computer has ended by itself. Does nothing if its status is newer than `at`. */
export async function noteGone(
  deps: Deps,
  hostId: string,
  { id, generation }: Computer,
  at: Date,
  code = 'COMPUTER_ENDED',
): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const computer = await lockAnyComputer(tx, id);
    if (computer?.hostId !== hostId || computer.generation !== generation || computer.wish !== null) return;
    if (computer.status !== 'running' && computer.status !== 'paused') return;
    if (computer.statusAt >= at) return;
    await setError(deps, tx, computer, code);
  });
}

/** Notes that a host has shut down cleanly and stopped its computers. */
export async function noteShutdown(deps: Deps, hostId: string): Promise<void> {
  for (const { id } of await activeOn(deps.database, hostId)) {
    await transaction(deps.database, async (tx) => {
      const computer = await lockAnyComputer(tx, id);
      if (computer === undefined || (computer.status !== 'running' && computer.status !== 'paused')) return;
      await stopFor(deps, tx, computer, 'HOST_STOPPED', new Date());
    });
  }
}

/**
 * Notes that nothing runs in a restored installation: what its rows call active ran on the machine of the backup. What
 * runs on a computer, such as a desktop, ends with it. Minutes that the host had not confirmed are not charged.
 */
export async function noteRestored(deps: Deps): Promise<void> {
  const sql = 'SELECT id FROM computers WHERE status IN (?)';
  const rows = await select<{ id: string }>(deps.database.pool, sql, [activeStatuses]);
  for (const { id } of rows) {
    await transaction(deps.database, async (tx) => {
      const computer = await lockAnyComputer(tx, id);
      if (computer === undefined || !isActive(computer)) return;
      await stopFor(deps, tx, computer, 'RESTORED', computer.aliveAt ?? computer.startedAt ?? new Date());
    });
  }
}

async function stopFor({ config }: Deps, tx: Transaction, computer: Computer, code: string, at: Date): Promise<void> {
  await chargeAll(tx, computer, at, config);
  await change(tx, computer, { errorCode: code, errorDetail: detailOf(code) });
  await stopped(tx, computer);
}
