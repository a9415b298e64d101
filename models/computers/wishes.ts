import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Actor, type AuditAction, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { requireCredits } from '../billing/usage.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { type Computer, getComputer } from './computer.ts';
import {
  beginComputerOperation,
  type ComputerOperationKind,
  endComputerOperations,
  failedWith,
} from './computerOperations.ts';
import { lockComputer } from './computers.ts';
import { addDefaultComputer } from './defaultComputer.ts';
import { refusalOfHost } from './hosts.ts';
import { leaveHost, leaveLostHost } from './leaving.ts';
import { requireRoomToRun } from './quotas.ts';
import { loosen } from './saves.ts';
import { beginStart, change, isActive, requireQuietHome } from './starting.ts';
import { systemBeside } from './systems.ts';
import { markUsed } from './use.ts';

/** A computer, and the operation that does what was asked. Undefined if there is nothing to do. */
export interface Asked {
  computer: Computer;
  operation: Operation | undefined;
}

export interface ComputerRequest {
  spaceId: string;
  computerId: string;
  actor: Actor & { userId: string };
}

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/**
 * Asks for a computer to run. Concurrent requests start it once. Throws 402, 404, 409 `TOO_MANY_RUNNING` or
 * `TOO_MUCH_MEMORY`, 503 `NO_HOST` or `HOST_LOST`.
 */
export async function askToWake(deps: Deps, request: ComputerRequest): Promise<Asked> {
  const { database, config } = deps;
  const seen = await getComputer(database, request.spaceId, request.computerId);
  if (await runs(database, seen)) return { computer: seen, operation: undefined };
  const underWay = seen.wish === 'wake' ? await findOperation(database, request) : undefined;
  if (underWay !== undefined) return { computer: seen, operation: underWay };
  await requireCredits(database, config.billing, request.spaceId);
  return ask(deps, request, 'wakeComputer', 'computer.woken', async (tx, computer) => {
    if (computer.status === 'running' && (computer.wish === null || computer.wish === 'move')) return 'done';
    if (computer.wish === 'wake') return 'waits';
    if (isMoving(computer)) {
      await requireRoomToRun(tx, computer, config);
      await change(tx, computer, { wakesAfterMove: true });
      return 'waits';
    }
    await endComputerOperations(tx, computer.id, ['pauseComputer'], failedWith('COMPUTER_WOKEN'));
    if (computer.status === 'starting') {
      await endComputerOperations(tx, computer.id, ['stopComputer'], failedWith('COMPUTER_WOKEN'));
    }
    await requireRoomToRun(tx, computer, config);
    if (!isActive(computer) || computer.status === 'paused') await leaveLostHost(deps, tx, computer);
    if (computer.status === 'paused') {
      const refusal = await refusalOfHost(database, computer.hostId ?? '', config);
      if (refusal !== undefined) throw refusal;
      await change(tx, computer, { status: 'starting' });
    }
    await change(tx, computer, { wish: 'wake' });
    if (!['starting', 'running', 'stopping'].includes(computer.status)) await beginStart(tx, computer, config);
    return 'waits';
  });
}

/** Finds a wake that is under way without a lock, so that concurrent callers do not wait for each other. */
async function findOperation(
  database: Database,
  { computerId, actor }: ComputerRequest,
): Promise<Operation | undefined> {
  const where = { subjectId: computerId, kind: 'wakeComputer', userId: actor.userId, status: 'running' };
  return (await operationModels(database).Operation.findOne({ where })) ?? undefined;
}

/** Whether it runs. If so, this counts as use. */
async function runs(database: Database, computer: Computer): Promise<boolean> {
  if (computer.status !== 'running' || computer.wish !== null) return false;
  return markUsed(database, computer);
}

/** Asks for a computer to stop. Throws 404. */
export function askToStop(deps: Deps, request: ComputerRequest): Promise<Asked> {
  return ask(deps, request, 'stopComputer', 'computer.stopped', async (tx, computer) => {
    const { status, wish } = computer;
    if (wish === null && (status === 'created' || status === 'stopped')) return 'done';
    await endComputerOperations(tx, computer.id, beforeStop, failedWith('COMPUTER_STOPPED'));
    if (isMoving(computer)) {
      await change(tx, computer, { wakesAfterMove: false });
      return status === 'stopping' ? 'waits' : 'done';
    }
    // The workflow gives up a start that is under way, and stops what has started.
    await change(tx, computer, { wish: 'stop', ...(status !== 'starting' && { status: 'stopping' }) });
    return 'waits';
  });
}

/** Asks for a computer to be paused. Throws 404, 409 `COMPUTER_NOT_RUNNING`. */
export function askToPause(deps: Deps, request: ComputerRequest): Promise<Asked> {
  return ask(deps, request, 'pauseComputer', 'computer.paused', async (tx, computer) => {
    if (computer.status === 'paused' && computer.wish === null) return 'done';
    if (computer.status !== 'running') {
      throw new DomainError('conflict', 'COMPUTER_NOT_RUNNING', 'The computer is not running, so it cannot be paused.');
    }
    await endComputerOperations(tx, computer.id, ['wakeComputer', 'recoverComputer'], failedWith('COMPUTER_PAUSED'));
    await change(tx, computer, { wish: 'pause' });
    return 'waits';
  });
}

/** Whether it is between two hosts or two homes, so that it starts again only after that. */
function isMoving({ status, wish }: Computer): boolean {
  return (wish === 'move' || wish === 'restore') && (status === 'stopping' || !isActive({ status }));
}

/**
 * Asks for a computer to be started again, from any state. If its host is lost, it begins on another host with its saved
 * home. If its home was never saved, or its save is broken, it begins with an empty one, but only with `discardHome`.
 * Throws 402, 404, 409, 503.
 */
export async function askToRecover(deps: Deps, request: ComputerRequest & { discardHome: boolean }): Promise<Asked> {
  const { database, config } = deps;
  await requireCredits(database, config.billing, request.spaceId);
  return ask(deps, request, 'recoverComputer', 'computer.recovered', async (tx, computer) => {
    if (computer.wish === 'restore') requireQuietHome(computer);
    await requireRoomToRun(tx, computer, config);
    const { hostId } = computer;
    const refusal = hostId === null ? undefined : await refusalOfHost(database, hostId, config);
    const isHostLost = refusal !== undefined;
    if (isHostLost && computer.homeSaveId === null && !request.discardHome) throw refusal;
    const isBroken = computer.errorCode === 'SAVE_BROKEN';
    if (request.discardHome && isBroken) await forgetHead(tx, computer);
    else if (request.discardHome && hostId !== null && !isHostLost) {
      const detail = 'The host of the computer answers. Recover the computer without discardHome, or delete it.';
      throw new DomainError('conflict', 'HOME_IS_THERE', detail);
    }
    await endComputerOperations(tx, computer.id, ['stopComputer', 'pauseComputer'], failedWith('COMPUTER_WOKEN'));
    if (isHostLost) await leaveHost(deps, tx, computer);
    await change(tx, computer, { wish: 'wake' });
    if (computer.hostId === null) await beginStart(tx, computer, config);
    else await change(tx, computer, { status: 'stopping', errorCode: null, errorDetail: null });
    return 'waits';
  });
}

/** The next start begins with an empty home, in the system of the computer's environment if that can be had. */
async function forgetHead(tx: Transaction, computer: Computer): Promise<void> {
  const { homeSaveId } = computer;
  if (homeSaveId !== null) await loosen(tx, [homeSaveId]);
  await change(tx, computer, { homeSavedAt: null, ...(await systemBeside(tx, computer)) });
}

/** Deletes a computer for its users at once. Its home is removed after that. Throws 404. */
export function askToDelete(deps: Deps, request: ComputerRequest): Promise<Asked> {
  return ask(deps, request, 'deleteComputer', 'computer.deleted', async (tx, computer) => {
    const { defaultOf, spaceId, id } = computer;
    await endComputerOperations(
      tx,
      id,
      [...beforeStop, 'stopComputer', 'forkComputer', 'restoreComputer'],
      failedWith('COMPUTER_DELETED'),
    );
    await change(tx, computer, { wish: 'delete', deletedAt: new Date(), defaultOf: null });
    await execute(tx, 'DELETE FROM computer_secrets WHERE computer_id = ?', [id]);
    if (defaultOf !== null) await addDefaultComputer(tx, spaceId, request.actor.userId);
    return 'waits';
  });
}

const beforeStop = ['wakeComputer', 'recoverComputer', 'pauseComputer'] as const;

/**
 * Writes a wish, and begins the operation that waits for it. A known `operationId` returns that operation. Throws 409
 * `COMPUTER_BUSY` while the computer is being copied.
 */
export async function ask(
  { database }: Deps,
  { spaceId, computerId, actor, operationId }: ComputerRequest & { operationId?: string | undefined },
  kind: ComputerOperationKind,
  action: AuditAction,
  decide: (tx: Transaction, computer: Computer) => Promise<'done' | 'waits'>,
): Promise<Asked> {
  return transaction(database, async (tx) => {
    await lockLivingSpace(tx, spaceId);
    const computer = await lockComputer(tx, spaceId, computerId);
    const known = operationId === undefined ? null : await operationModels(tx).Operation.findByPk(operationId);
    if (known !== null) return { computer, operation: known };
    if (computer.wish === 'fork' && kind !== 'deleteComputer') requireQuietHome(computer);
    const before = `${computer.wish} ${computer.status}`;
    if ((await decide(tx, computer)) === 'done') return { computer, operation: undefined };
    if (before !== `${computer.wish} ${computer.status}`) await appendAudit(tx, spaceId, actor, action, computerId);
    return { computer, operation: await beginComputerOperation(tx, computer, kind, actor.userId, operationId) };
  });
}
