import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { chargeAll, chargeBegun } from './charging.ts';
import type { Computer } from './computer.ts';
import { endComputerOperations, failedWith, succeed } from './computerOperations.ts';
import { lockAnyComputer } from './computers.ts';
import { leaveHost, leaveUnfilled } from './leaving.ts';
import { isMisplaced } from './placing.ts';
import { detailOf, reasonCode } from './reasons.ts';
import { addRemains } from './remains.ts';
import { restored, restoreFailed } from './restoring.ts';
import { loosen } from './saves.ts';
import { change, isActive } from './starting.ts';
import type { HostStep } from './steps.ts';

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/** How a step ended. Without a code it succeeded. */
export interface StepEnd {
  computerId: string;
  generation: number;
  /** The step's number, as its order said it. Absent in reports of workflows from before it was said. */
  number?: number;
  step: HostStep;
  code?: string;
}

/**
 * Records how a step of a computer ended: charges the use until then, and ends the operations that waited for it. A
 * step of an older generation changes nothing, nor does the same end again, even if it comes when a later step of the
 * same kind is under way.
 */
export async function endStep(deps: Deps, { computerId, generation, number, step, code }: StepEnd): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer === undefined || computer.generation !== generation) return;
    if (number !== undefined && number !== computer.stepNumber) return;
    await change(tx, computer, { stepNumber: computer.stepNumber + 1 });
    // The row no longer ordered this step when the host looked. The next look decides what follows.
    if (code === 'NOT_ORDERED') return;
    if (code === 'COMPUTER_STOPPED' && isWantedStill(step, computer)) return;
    if (step === 'start' && isStartedAgain(code) && isCutOff(deps, computer)) {
      await change(tx, computer, { generation: generation + 1 });
    } else if (code !== undefined) {
      await failed[step](deps, tx, computer, reasonCode(code));
      if (step === 'start' && isUnfilled(code)) await leaveUnfilled(deps, tx, computer);
    } else await done[step](deps, tx, computer);
  });
}

/**
 * Whether a pause or a fork is still wanted although its step was interrupted: the interruption was for another order,
 * which is done by now. The step is then taken again.
 */
function isWantedStill(step: HostStep, { wish, status }: Computer): boolean {
  return (step === 'pause' && wish === 'pause' && status === 'running') || (step === 'fork' && wish === 'fork');
}

/**
 * Whether a failed start can be made again under another generation. `GENERATION_ENDED`: its host was killed during the
 * start, and has ended this generation. `COMPUTER_STOPPED`: the start was interrupted for another order, which is done
 * by now, and what had started is being ended.
 */
function isStartedAgain(code: string | undefined): boolean {
  return code === 'GENERATION_ENDED' || code === 'COMPUTER_STOPPED';
}

/** Whether a start failed because its host could not make the home from the head. Another host may be able to. */
function isUnfilled(code: string): boolean {
  return code === 'NO_ROOM_FOR_HOME' || code === 'SAVE_UNREADABLE';
}

/** Whether this start was begun but never done, and there is time left for another. */
function isCutOff({ config }: Deps, { status, wish, minutesCharged, ranMs, statusAt }: Computer): boolean {
  const hasRun = minutesCharged > 0 || ranMs > 0;
  const isLate = Date.now() - statusAt.getTime() > config.computers.transitionMs;
  return status === 'starting' && wish === 'wake' && !hasRun && !isLate;
}

type End = (deps: Deps, tx: Transaction, computer: Computer) => Promise<void>;

const done: Record<HostStep, End> = {
  async start({ config }, tx, computer) {
    if (computer.status !== 'starting') return;
    const now = new Date();
    const alive = { startedAt: now, aliveAt: now, activeAt: now, usedAt: now, processes: 0 };
    await change(tx, computer, { status: 'running', ...alive, errorCode: null, errorDetail: null });
    await chargeBegun(tx, computer, now, config);
    if (computer.wish !== 'wake') return;
    await change(tx, computer, { wish: null });
    await succeed(tx, computer, ['wakeComputer', 'recoverComputer']);
  },
  async stop({ config }, tx, computer) {
    if (computer.status !== 'stopping') return;
    await chargeAll(tx, computer, new Date(), config);
    await stopped(tx, computer);
  },
  async pause({ config }, tx, computer) {
    if (computer.status !== 'running') return;
    const now = new Date();
    await chargeAll(tx, computer, now, config);
    const ranMs = computer.ranMs + (computer.startedAt === null ? 0 : now.getTime() - computer.startedAt.getTime());
    const wish = computer.wish === 'pause' ? null : computer.wish;
    await change(tx, computer, { status: 'paused', wish, ranMs, startedAt: null });
    await succeed(tx, computer, ['pauseComputer']);
  },
  async fork(_deps, tx, computer) {
    if (computer.wish !== 'fork') return;
    await change(tx, computer, { status: 'stopped', wish: null });
    await succeed(tx, computer, ['forkComputer']);
  },
  async destroy(_deps, tx, computer) {
    await removeComputer(tx, computer, { isHomeGone: true });
  },
  async release(deps, tx, computer) {
    if (computer.wish === 'move' && !isActive(computer)) await leaveHost(deps, tx, computer);
  },
  async restore(_deps, tx, computer) {
    if (computer.wish === 'restore' && !isActive(computer)) await restored(tx, computer);
  },
};

const failed: Record<HostStep, (deps: Deps, tx: Transaction, computer: Computer, code: string) => Promise<void>> = {
  async start(deps, tx, computer, code) {
    if (computer.status === 'starting' && computer.wish === 'wake') {
      // No caller stopped it. It was interrupted for another order, and there is no time left to start it again.
      await setError(deps, tx, computer, code === 'COMPUTER_STOPPED' ? 'TIMED_OUT' : code);
    }
    // It was ordered to stop or to be deleted meanwhile. That is the next step.
    else if (computer.status === 'starting') await change(tx, computer, { status: 'stopping' });
  },
  async stop(deps, tx, computer, code) {
    if (computer.status === 'stopping') await setError(deps, tx, computer, code);
  },
  async pause(_deps, tx, computer, code) {
    if (computer.wish !== 'pause') return;
    await change(tx, computer, { wish: null });
    await endComputerOperations(tx, computer.id, ['pauseComputer'], failedWith(code));
  },
  async fork(_deps, tx, computer, code) {
    if (computer.wish !== 'fork') return;
    await abandonFork(tx, computer, code);
  },
  async destroy(_deps, tx, computer) {
    await removeComputer(tx, computer, { isHomeGone: false });
  },
  async release(deps, tx, computer, code) {
    if (computer.wish !== 'move' || code === 'COMPUTER_STOPPED') return;
    // The save goes on, and the next step waits for it again.
    if (code === 'TIMED_OUT' && computer.homeSaveFailed === null) return;
    const wish = computer.wakesAfterMove ? 'wake' : null;
    await change(tx, computer, { wish, wakesAfterMove: false });
    // On this host it must not run, so it would be ordered to move again and again.
    if (wish === 'wake' && (await isMisplaced(tx, computer, deps.config))) await setError(deps, tx, computer, code);
  },
  async restore(deps, tx, computer, code) {
    // After an interruption for another order, the step is taken again.
    if (computer.wish === 'restore' && code !== 'COMPUTER_STOPPED') await restoreFailed(deps, tx, computer, code);
  },
};

/** Records that nothing of the computer runs any more. A wish other than `stop` stays. */
export async function stopped(tx: Transaction, computer: Computer): Promise<void> {
  const wish = computer.wish === 'stop' ? null : computer.wish;
  await change(tx, computer, { status: 'stopped', wish, startedAt: null, processes: 0 });
  await succeed(tx, computer, ['stopComputer']);
}

/** Removes a half-copied computer, so that it takes no place in its space. */
export async function abandonFork(tx: Transaction, computer: Computer, code: string): Promise<void> {
  await endComputerOperations(tx, computer.id, ['forkComputer'], failedWith(code));
  await removeComputer(tx, computer, { isHomeGone: false });
}

/**
 * Records that it does not run any more, or never did, and why. It takes no place and costs nothing. A wish to delete
 * it stays.
 */
export async function setError(
  { config }: Pick<Deps, 'config'>,
  tx: Transaction,
  computer: Computer,
  code: string,
): Promise<void> {
  const { startedAt, aliveAt } = computer;
  let { ranMs } = computer;
  if (startedAt !== null && aliveAt !== null) {
    // Charge no time that its host has not confirmed.
    await chargeAll(tx, computer, aliveAt, config);
    ranMs += Math.max(0, aliveAt.getTime() - startedAt.getTime());
  }
  const wish = computer.wish === 'delete' ? computer.wish : null;
  const error = { errorCode: code, errorDetail: detailOf(code) };
  await change(tx, computer, { status: 'error', wish, ...error, startedAt: null, ranMs, processes: 0 });
  await endComputerOperations(
    tx,
    computer.id,
    ['wakeComputer', 'recoverComputer', 'stopComputer', 'pauseComputer', 'restoreComputer'],
    failedWith(code),
  );
}

/** Deletes its row. Unless the host has said that the home is gone, notes what is left on the host. */
export async function removeComputer(
  tx: Transaction,
  computer: Computer,
  { isHomeGone }: { isHomeGone: boolean },
): Promise<void> {
  if (!isHomeGone) await addRemains(tx, computer);
  if (computer.homeSaveId !== null) await loosen(tx, [computer.homeSaveId]);
  await execute(tx, 'DELETE FROM computers WHERE id = ?', [computer.id]);
  await succeed(tx, computer, ['deleteComputer']);
}
