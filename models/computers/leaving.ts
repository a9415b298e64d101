import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import type { Database } from '../database/database.ts';
import { findVersion } from '../environments/version.ts';
import { chargeAll } from './charging.ts';
import type { Computer } from './computer.ts';
import { endComputerOperations, failedWith, succeed } from './computerOperations.ts';
import { findHost, isGivenUp } from './hosts.ts';
import { hasPlaceElsewhere } from './placing.ts';
import { addRemains } from './remains.ts';
import { findSave } from './saveRows.ts';
import { abandonSaves } from './saves.ts';
import { change, isActive } from './starting.ts';

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/**
 * Leaves a host. The next start is on any host, with the home of the head. This host keeps what was never saved as a
 * snapshot, and removes its copy (activities/computers/homeSaves.ts).
 */
export async function leaveHost({ config }: Pick<Deps, 'config'>, tx: Transaction, computer: Computer): Promise<void> {
  const { id, hostId, aliveAt } = computer;
  if (hostId === null) return;
  if (aliveAt !== null) await chargeAll(tx, computer, aliveAt, config);
  await addRemains(tx, computer);
  await abandonSaves(tx, { computerId: id, hostId });
  const gone = { startedAt: null, processes: 0, homeSaveFailed: null };
  await change(tx, computer, { hostId: null, status: 'stopped', ...gone });
  await followHead(tx, computer);
}

/** The system of a computer is that of its head. A version's own save was made before the version, and does not name it. */
async function followHead(tx: Transaction, computer: Computer): Promise<void> {
  const { homeSaveId, environmentVersionId } = computer;
  const head = homeSaveId === null ? undefined : await findSave(tx, homeSaveId);
  const version = environmentVersionId === null ? undefined : await findVersion(tx, environmentVersionId);
  if (head === undefined || version?.saveId === head.id) return;
  await change(tx, computer, { base: head.base, environmentVersionId: head.environmentVersionId });
}

/**
 * Leaves a host that has no home of the computer and could not make it from the head, if another host has room. The
 * computer keeps its status. Its next start chooses a host anew.
 */
export async function leaveUnfilled({ config }: Deps, tx: Transaction, computer: Computer): Promise<void> {
  const { status, homeSaveId } = computer;
  if (homeSaveId === null || isActive(computer) || !(await hasPlaceElsewhere(tx, computer, config))) return;
  await leaveHost({ config }, tx, computer);
  await change(tx, computer, { status });
}

/** Leaves a lost or removed host if the home is saved and another host has room. Otherwise it stays. */
export async function leaveLostHost(deps: Deps, tx: Transaction, computer: Computer): Promise<boolean> {
  const { hostId, homeSaveId } = computer;
  if (hostId === null || homeSaveId === null) return false;
  if (!isGivenUp(await findHost(deps.database, hostId), deps.config)) return false;
  if (!(await hasPlaceElsewhere(tx, computer, deps.config))) return false;
  await leaveHost(deps, tx, computer);
  return true;
}

/**
 * Brings a computer that was active on a lost host, or has an order, to another one. Returns whether it left. A paused
 * computer without an order stays: when the host is back, it still has its memory.
 */
export async function failOver(deps: Deps, tx: Transaction, computer: Computer): Promise<boolean> {
  const { status, wish } = computer;
  if (!deps.config.computers.failover || wish === 'fork' || (status === 'paused' && wish === null)) return false;
  const shouldRun = (status === 'running' || status === 'starting') && wish !== 'stop';
  const wakes = shouldRun || wish === 'wake' || (wish === 'move' && computer.wakesAfterMove);
  if (!(await leaveLostHost(deps, tx, computer))) return false;
  await endComputerOperations(tx, computer.id, ['pauseComputer'], failedWith('HOST_LOST'));
  await change(tx, computer, { wish: wakes ? 'wake' : null, wakesAfterMove: false });
  if (!wakes) await succeed(tx, computer, ['stopComputer']);
  return true;
}

/**
 * Prepares the next step of a move. `stop`: the computer is stopping, and starts again later. `release`: its host saves
 * its home for the last time. `wait`: it goes on running, since no other host has room now. `arrived`: it has left its
 * host.
 */
export async function prepareMove(
  tx: Transaction,
  computer: Computer,
  config: Pick<Config, 'computers'>,
): Promise<'stop' | 'release' | 'wait' | 'arrived'> {
  if (computer.hostId === null) {
    await change(tx, computer, { wish: computer.wakesAfterMove ? 'wake' : null, wakesAfterMove: false });
    return 'arrived';
  }
  if (!isActive(computer)) return 'release';
  if (!(await hasPlaceElsewhere(tx, computer, config))) return 'wait';
  await change(tx, computer, { status: 'stopping', wakesAfterMove: computer.status !== 'paused' });
  return 'stop';
}
