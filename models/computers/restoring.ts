import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import type { Computer } from './computer.ts';
import { endComputerOperations, failedWith, succeed } from './computerOperations.ts';
import { lockAnyComputer } from './computers.ts';
import { findHost, isGivenUp, refusalOfHost } from './hosts.ts';
import { leaveHost } from './leaving.ts';
import { requireRoomForSnapshot } from './quotas.ts';
import { isVersion, type RestoreSource, sourceOf } from './restoreSources.ts';
import { findSave, lockSave } from './saveRows.ts';
import { loosen } from './saves.ts';
import { addSnapshot, isBeingMade, lockKept } from './snapshots.ts';
import { change, isActive, requireQuietHome } from './starting.ts';
import { type Asked, ask, type ComputerRequest } from './wishes.ts';

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/**
 * Asks for a computer to get the home of a snapshot of its space. The home that it has now becomes another snapshot. A
 * computer that runs is stopped, and starts again. A known `operationId` returns that operation. Throws 404, 409
 * `SNAPSHOT_NOT_MADE`, `TOO_MANY_SNAPSHOTS` or `COMPUTER_BUSY`.
 */
export function askToRestore(
  deps: Deps,
  request: ComputerRequest & { snapshotId: string; operationId?: string },
): Promise<Asked> {
  const { spaceId, snapshotId } = request;
  return ask(deps, request, 'restoreComputer', 'computer.restored', async (tx, computer) => {
    const { id } = await lockKept(tx, spaceId, snapshotId);
    if (computer.wish === 'restore' && computer.restoresId === id) return 'waits';
    requireQuietHome(computer);
    await beginToRestore(deps, tx, computer, id);
    return 'waits';
  });
}

/** Writes the wish to be restored to this snapshot or version of an environment. Throws 409. */
export async function beginToRestore(
  deps: Deps,
  tx: Transaction,
  computer: Computer,
  restoresId: string,
): Promise<void> {
  const { database, config } = deps;
  if (await isBeingMade(tx, computer.id)) {
    const detail = 'A snapshot of the computer is being made. Try again soon, or delete that snapshot.';
    throw new DomainError('conflict', 'COMPUTER_BUSY', detail, { retryAfterSeconds: 5 });
  }
  const { spaceId, hostId, homeSaveId, status } = computer;
  if (hostId !== null || homeSaveId !== null) await requireRoomForSnapshot(tx, spaceId, config);
  if (hostId !== null && (await refusalOfHost(database, hostId, config)) !== undefined) {
    await leaveHost(deps, tx, computer);
  }
  await endComputerOperations(tx, computer.id, ['pauseComputer'], failedWith('COMPUTER_RESTORED'));
  const isAtRest = computer.hostId === null || status === 'created' || status === 'stopped';
  await change(tx, computer, {
    status: !isAtRest ? 'stopping' : computer.status === 'created' ? 'created' : 'stopped',
    wish: 'restore',
    restoresId,
    restoreBegan: false,
    // The end of an earlier restore that is still under way is not the end of this one.
    stepNumber: computer.stepNumber + 1,
    wakesAfterMove: shouldRun(computer, status),
    errorCode: null,
    errorDetail: null,
  });
}

function shouldRun({ wish, wakesAfterMove }: Computer, status: Computer['status']): boolean {
  if (wish === 'wake' || (wish === 'move' && wakesAfterMove)) return true;
  return (status === 'starting' || status === 'running') && wish !== 'stop';
}

/** Prepares the next step of a restore. `restored`: nothing is left to do on a host. */
export async function prepareRestore(
  deps: Deps,
  tx: Transaction,
  computer: Computer,
  { isHostLost }: { isHostLost: boolean },
): Promise<'stop' | 'restore' | 'restored'> {
  // What was never saved becomes a snapshot when the host is back.
  if (isHostLost) await leaveHost(deps, tx, computer);
  if (computer.hostId !== null) return computer.status === 'stopping' ? 'stop' : 'restore';
  await keepHead(tx, computer);
  await restored(tx, computer);
  return 'restored';
}

/**
 * For the host that replaces the home, which is saved by now: names that save, once. Returns what the computer gets.
 * The saves from here on are of a new system, if it gets one.
 */
export async function beginRestore(database: Database, computerId: string): Promise<RestoreSource | undefined> {
  return transaction(database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer?.wish !== 'restore') return undefined;
    const source = await keepHead(tx, computer);
    if (source?.keepsHome) await change(tx, computer, { restoreBegan: true });
    return source;
  });
}

/**
 * For the host that has given the computer its new system, beside its home: the computer has it from now on, even if it
 * cannot be saved.
 */
export async function noteSystem(database: Database, computerId: string): Promise<void> {
  await transaction(database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    const source = computer?.wish === 'restore' ? await sourceOf(tx, computer) : undefined;
    if (computer !== undefined && source?.keepsHome === true) await takeSystem(tx, computer, source);
  });
}

async function takeSystem(tx: Transaction, computer: Computer, source: RestoreSource): Promise<void> {
  const { base, environmentVersionId } = source;
  await change(tx, computer, { base, environmentVersionId });
}

/** Names the head, unless this restore has already named it. Returns what the computer gets. */
async function keepHead(tx: Transaction, computer: Computer): Promise<RestoreSource | undefined> {
  const { id: computerId, spaceId, homeSaveId, statusAt } = computer;
  const source = await sourceOf(tx, computer);
  if (source === undefined || homeSaveId === null) return source;
  if (source.keepsHome && (await isHeadOf(tx, computer, source))) return source;
  const name = `${before}${source.name.replace(before, '')}`.slice(0, mostLetters);
  const sql = 'SELECT id FROM computer_snapshots WHERE save_id = ? AND name = ? AND created_at >= ?';
  if ((await select(tx, sql, [homeSaveId, name, statusAt])).length > 0) return source;
  await lockSave(tx, homeSaveId);
  await addSnapshot(tx, { spaceId, computerId, saveId: homeSaveId, name, createdBy: null });
  return source;
}

async function isHeadOf(tx: Transaction, { homeSaveId }: Computer, source: RestoreSource): Promise<boolean> {
  const head = homeSaveId === null ? undefined : await findSave(tx, homeSaveId);
  return head !== undefined && head.environmentVersionId === source.environmentVersionId;
}

const before = 'Before restoring ';
const mostLetters = 200;

/** What it was restored to is the computer's from now on. It starts again if it ran. */
export async function restored(tx: Transaction, computer: Computer): Promise<void> {
  const source = await sourceOf(tx, computer);
  if (source === undefined) {
    return endRestore(tx, computer, isVersion(computer.restoresId) ? 'VERSION_DELETED' : 'SNAPSHOT_DELETED');
  }
  // Without its host, the computer has its home in another system.
  if (source.keepsHome && computer.hostId === null && !(await isHeadOf(tx, computer, source))) {
    return endRestore(tx, computer, 'HOST_LOST');
  }
  if (!source.keepsHome) {
    await lockSave(tx, source.saveId);
    if (computer.homeSaveId !== null) await loosen(tx, [computer.homeSaveId]);
    await change(tx, computer, { homeSaveId: source.saveId, homeSavedAt: source.takenAt, homeSaveFailed: null });
  }
  await takeSystem(tx, computer, source);
  await succeed(tx, computer, ['restoreComputer']);
  await endRestore(tx, computer);
}

/** Records that the home could not be replaced. The computer keeps the one that it has, and starts again if it ran. */
export async function restoreFailed(
  { database, config }: Deps,
  tx: Transaction,
  computer: Computer,
  code: string,
): Promise<void> {
  const { hostId } = computer;
  // The next step leaves the host.
  if (hostId !== null && isGivenUp(await findHost(database, hostId), config)) return;
  // It has the system already, and only could not be saved with it.
  const source = await sourceOf(tx, computer);
  if (source?.keepsHome === true && computer.environmentVersionId === source.environmentVersionId) {
    return restored(tx, computer);
  }
  await endRestore(tx, computer, code);
}

async function endRestore(tx: Transaction, computer: Computer, code?: string): Promise<void> {
  if (code !== undefined) await endComputerOperations(tx, computer.id, ['restoreComputer'], failedWith(code));
  if (!isActive(computer)) await succeed(tx, computer, ['stopComputer']);
  const wish = computer.wakesAfterMove ? 'wake' : null;
  await change(tx, computer, { wish, wakesAfterMove: false, restoresId: null, restoreBegan: false });
}
