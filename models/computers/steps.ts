import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { chargeConfirmed } from './charging.ts';
import { type Computer, limitsOf } from './computer.ts';
import { endComputerOperations, succeed } from './computerOperations.ts';
import { lockAnyComputer } from './computers.ts';
import { abandonFork, removeComputer, setError, stopped } from './ends.ts';
import { findHost, isGivenUp } from './hosts.ts';
import { failOver, prepareMove } from './leaving.ts';
import { detailOf, reasonCode } from './reasons.ts';
import { sourceOf } from './restoreSources.ts';
import { prepareRestore } from './restoring.ts';
import { findSave } from './saveRows.ts';
import { beginStart, change, isActive } from './starting.ts';

/** A step that a host takes. */
export type HostStep = 'start' | 'stop' | 'pause' | 'fork' | 'destroy' | 'release' | 'restore';

/** What a computer’s workflow does next. */
export type ComputerStep =
  | { do: 'rest' }
  | { do: 'watch'; waitMs: number }
  | { do: HostStep; generation: number; number: number; hostId: string; deadlineMs: number };

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/** The shortest time that a step is given, even if it was asked for long ago. */
const leastStepMs = 5_000;
const longestWatchMs = 60_000;
/** A slower fill of a home fails: 4 MiB a second. */
const leastFilledPerMs = 4_194;
const minuteMs = 60_000;
/** The first computer with a base waits until its host has made that. */
const baseMs = 40 * minuteMs;

/**
 * Looks at a computer: charges its use, records what has happened to it, and decides the next step. The decision is in
 * the row, so asking again gives the same step.
 */
export async function nextStep(deps: Deps, computerId: string): Promise<ComputerStep> {
  await chargeConfirmed(deps.database, computerId, deps.config);
  return transaction(deps.database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    return computer === undefined ? { do: 'rest' } : decide(deps, tx, computer);
  });
}

async function decide(deps: Deps, tx: Transaction, computer: Computer): Promise<ComputerStep> {
  const { database, config } = deps;
  const { status, wish, hostId } = computer;
  const host = hostId === null ? undefined : await findHost(database, hostId);
  const isHostLost = hostId !== null && isGivenUp(host, config);
  if (wish === 'delete') {
    if (hostId !== null && !isHostLost) return stepOf('destroy', computer, config);
    await removeComputer(tx, computer, { isHomeGone: hostId === null });
    return { do: 'rest' };
  }
  if (wish === 'restore') {
    const next = await prepareRestore(deps, tx, computer, { isHostLost });
    if (next === 'restored') return decide(deps, tx, computer);
    return next === 'stop' ? stepOf('stop', computer, config) : restoreStep(tx, computer, config);
  }
  if (hostId === null && status === 'stopping') {
    await stopped(tx, computer);
    return decide(deps, tx, computer);
  }
  if (isHostLost && (isActive(computer) || wish !== null)) {
    if (await failOver(deps, tx, computer)) return decide(deps, tx, computer);
    return giveUp(deps, tx, computer, host === undefined ? 'HOST_REMOVED' : 'HOST_LOST');
  }
  if (wish === 'fork') return stepOf('fork', computer, config);
  if (status === 'stopping') return stepOf('stop', computer, config);
  if (wish === 'stop') {
    if (status === 'starting' || status === 'running' || status === 'paused' || status === 'error') {
      await change(tx, computer, { status: 'stopping' });
      return decide(deps, tx, computer);
    }
    await succeed(tx, computer, ['stopComputer']);
    return settled(deps, tx, computer);
  }
  if (wish === 'wake' || status === 'starting') return wakeStep(deps, tx, computer);
  if (wish === 'move') return moveStep(deps, tx, computer);
  if (wish === 'pause') {
    if (status === 'running') return stepOf('pause', computer, config);
    await succeed(tx, computer, ['pauseComputer']);
    return settled(deps, tx, computer);
  }
  if (status !== 'running' && status !== 'paused') return { do: 'rest' };
  return watch(deps, tx, computer);
}

/** Gives up what was asked of a computer whose host is lost. */
async function giveUp(deps: Deps, tx: Transaction, computer: Computer, code: string): Promise<ComputerStep> {
  if (computer.wish === 'fork') await abandonFork(tx, computer, code);
  else await setError(deps, tx, computer, code);
  return { do: 'rest' };
}

async function settled(deps: Deps, tx: Transaction, computer: Computer): Promise<ComputerStep> {
  await change(tx, computer, { wish: null });
  return decide(deps, tx, computer);
}

async function wakeStep(deps: Deps, tx: Transaction, computer: Computer): Promise<ComputerStep> {
  const { status } = computer;
  if (status === 'running') {
    await succeed(tx, computer, ['wakeComputer', 'recoverComputer']);
    return settled(deps, tx, computer);
  }
  if (status === 'starting') return startStep(tx, computer, deps.config);
  if (status === 'paused') await change(tx, computer, { status: 'starting' });
  else {
    try {
      await beginStart(tx, computer, deps.config);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      await setError(deps, tx, computer, reasonCode(error.code));
      return { do: 'rest' };
    }
    if (computer.wish === 'move') return moveStep(deps, tx, computer);
  }
  return startStep(tx, computer, deps.config);
}

/**
 * A start may have to fill the home first, from a save of another host or of another computer, or to make the base of a
 * computer that has no files yet.
 */
async function startStep(
  tx: Transaction,
  computer: Computer,
  config: Pick<Config, 'computers'>,
): Promise<ComputerStep> {
  const { homeSaveId, hostId } = computer;
  const head = homeSaveId === null ? undefined : await findSave(tx, homeSaveId);
  const isThere = head === undefined || (head.hostId === hostId && head.computerId === computer.id);
  const filled = isThere ? 0 : Number(head.homeBytes);
  const madeMs = computer.base !== null && head === undefined ? baseMs : 0;
  return stepOf('start', computer, config, filled / leastFilledPerMs + madeMs);
}

/** A restore saves the present home before it fills the other one. */
async function restoreStep(
  tx: Transaction,
  computer: Computer,
  config: Pick<Config, 'computers'>,
): Promise<ComputerStep> {
  const { homeSaveId } = computer;
  const head = homeSaveId === null ? undefined : await findSave(tx, homeSaveId);
  const source = await sourceOf(tx, computer);
  const bytes = Number(head?.homeBytes ?? 0) + Number(source?.homeBytes ?? 0);
  return stepOf('restore', computer, config, bytes / leastFilledPerMs);
}

async function moveStep(deps: Deps, tx: Transaction, computer: Computer): Promise<ComputerStep> {
  const next = await prepareMove(tx, computer, deps.config);
  if (next === 'wait') return watch(deps, tx, computer);
  return next === 'release' ? stepOf('release', computer, deps.config) : decide(deps, tx, computer);
}

function stepOf(
  step: HostStep,
  computer: Computer,
  { computers }: Pick<Config, 'computers'>,
  moreMs = 0,
): ComputerStep {
  const { generation, stepNumber: number, hostId, statusAt } = computer;
  const deadlineMs = Math.max(leastStepMs, computers.transitionMs + moreMs - (Date.now() - statusAt.getTime()));
  return { do: step, generation, number, hostId: hostId ?? '', deadlineMs };
}

/** Decides for a computer that runs or is paused, and has no order. */
async function watch(deps: Deps, tx: Transaction, computer: Computer): Promise<ComputerStep> {
  const { config } = deps;
  const againMs = Math.min(longestWatchMs, config.computers.hostLostMs);
  const { leftMs, ended } = computer.status === 'paused' ? pauseLeft(computer, config) : idleLeft(computer, config);
  const isBroke = await isWithoutCredits(tx, computer.spaceId, config);
  const code = isBroke ? 'CREDITS_EXHAUSTED' : leftMs <= 0 ? ended : undefined;
  if (code === undefined) return { do: 'watch', waitMs: Math.max(1_000, Math.min(againMs, leftMs)) };
  await endComputerOperations(tx, computer.id, ['pauseComputer'], { status: 'cancelled' });
  await change(tx, computer, { status: 'stopping', errorCode: code, errorDetail: detailOf(code) });
  return decide(deps, tx, computer);
}

/** How much longer it may stay paused. It keeps its memory and its place meanwhile, and costs nothing. */
function pauseLeft({ statusAt }: Computer, { computers }: Pick<Config, 'computers'>) {
  return { leftMs: computers.pausedMs - (Date.now() - statusAt.getTime()), ended: 'PAUSED_TOO_LONG' };
}

/** How much longer it may run without being used. */
function idleLeft(computer: Computer, config: Pick<Config, 'computers'>) {
  const now = Date.now();
  const leftMs = limitsOf(computer, config).idleMinutes * minuteMs - (now - idleSince(computer, now));
  return { leftMs, ended: 'IDLE' };
}

/**
 * Since when nothing has run and no request has come. A computer that its host has not confirmed yet counts as active.
 */
function idleSince(computer: Computer, now: number): number {
  const { processes, aliveAt, activeAt, usedAt, startedAt } = computer;
  if (processes > 0 || aliveAt === null) return now;
  return Math.max(activeAt?.getTime() ?? 0, usedAt?.getTime() ?? 0, startedAt?.getTime() ?? 0);
}

async function isWithoutCredits(tx: Transaction, spaceId: string, { billing }: Pick<Config, 'billing'>) {
  if (!billing.enforced || billing.computerCreditsPerMinute === 0) return false;
  const [row] = await select<{ available: number }>(tx, 'SELECT available FROM billing_balances WHERE space_id = ?', [
    spaceId,
  ]);
  return (row?.available ?? 0) === 0;
}
