import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { chargeBegun } from './charging.ts';
import type { Computer } from './computer.ts';
import { type ComputerOperationKind, endComputerOperations, failedWith } from './computerOperations.ts';
import { lockAnyComputer } from './computers.ts';
import { detailOf, reasonCode } from './reasons.ts';
import { change } from './starting.ts';
import type { HostStep } from './steps.ts';
import { addRemains } from './wishes.ts';

type Deps = { database: Database; config: Pick<Config, 'computers' | 'billing'> };

/** How a step ended: without a code, well. */
export interface StepEnd {
  computerId: string;
  generation: number;
  step: HostStep;
  code?: string;
}

/**
 * Records how a step of a computer ended, with what it has used until then and the operations that waited for it. A step
 * of an older generation changes nothing, nor does the same end again.
 */
export async function endStep(deps: Deps, { computerId, generation, step, code }: StepEnd): Promise<void> {
  await transaction(deps.database, async (tx) => {
    const computer = await lockAnyComputer(tx, computerId);
    if (computer === undefined || computer.generation !== generation) return;
    // Nobody wanted it when the host looked. What is wanted now, be it the same again, is the next step.
    if (code === 'NOT_ORDERED') return;
    if (code === 'COMPUTER_STOPPED' && isWantedStill(step, computer)) return;
    if (step === 'start' && isStartedAgain(code) && isCutOff(deps, computer)) {
      await change(tx, computer, { generation: generation + 1 });
    } else if (code !== undefined) await failed[step](deps, tx, computer, reasonCode(code));
    else await done[step](deps, tx, computer);
  });
}

/**
 * Whether an interruption came too late, for something that had been done by then: a pause or a copy that nobody has
 * taken back is made all the same.
 */
function isWantedStill(step: HostStep, { wish, status }: Computer): boolean {
  return (step === 'pause' && wish === 'pause' && status === 'running') || (step === 'fork' && wish === 'fork');
}

/**
 * By another number: its host was killed while it started, and has ended what there was of it; or the start was
 * interrupted for what had been done by then, and what there is of it is being ended.
 */
function isStartedAgain(code: string | undefined): boolean {
  return code === 'GENERATION_ENDED' || code === 'COMPUTER_STOPPED';
}

/** Whether this start was begun and never done, and there is time left for another. */
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
};

const failed: Record<HostStep, (deps: Deps, tx: Transaction, computer: Computer, code: string) => Promise<void>> = {
  async start(deps, tx, computer, code) {
    if (computer.status === 'starting' && computer.wish === 'wake') {
      // Nobody has stopped what is wanted still: interrupted for something else, it has no time left.
      await setError(deps, tx, computer, code === 'COMPUTER_STOPPED' ? 'TIMED_OUT' : code);
    }
    // Somebody wants it stopped or deleted meanwhile, which is next.
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
};

/** Nothing of it runs any more. Another wish than that stays. */
export async function stopped(tx: Transaction, computer: Computer): Promise<void> {
  const wish = computer.wish === 'stop' ? null : computer.wish;
  await change(tx, computer, { status: 'stopped', wish, startedAt: null, processes: 0 });
  await succeed(tx, computer, ['stopComputer']);
}

/** What is half copied is nobody’s computer, and takes nobody’s place. */
export async function abandonFork(tx: Transaction, computer: Computer, code: string): Promise<void> {
  await endComputerOperations(tx, computer.id, ['forkComputer'], failedWith(code));
  await removeComputer(tx, computer, { isHomeGone: false });
}

/** Ends operations of these kinds well. */
export async function succeed(tx: Transaction, { id }: Computer, kinds: ComputerOperationKind[]): Promise<void> {
  await endComputerOperations(tx, id, kinds, { status: 'succeeded', result: { ok: true, id } });
}

/** It runs no more, or never did: it takes no place, costs nothing, and says why. A wish to delete it stays. */
export async function setError(
  { config }: Pick<Deps, 'config'>,
  tx: Transaction,
  computer: Computer,
  code: string,
): Promise<void> {
  const { startedAt, aliveAt } = computer;
  let { ranMs } = computer;
  if (startedAt !== null && aliveAt !== null) {
    // Nobody pays for what its host has not confirmed.
    await chargeAll(tx, computer, aliveAt, config);
    ranMs += Math.max(0, aliveAt.getTime() - startedAt.getTime());
  }
  const wish = computer.wish === 'delete' ? computer.wish : null;
  const error = { errorCode: code, errorDetail: detailOf(code) };
  await change(tx, computer, { status: 'error', wish, ...error, startedAt: null, ranMs, processes: 0 });
  await endComputerOperations(
    tx,
    computer.id,
    ['wakeComputer', 'recoverComputer', 'stopComputer', 'pauseComputer'],
    failedWith(code),
  );
}

/** Its row goes, and what is left on its host is noted where the host did not say that it is gone. */
export async function removeComputer(
  tx: Transaction,
  computer: Computer,
  { isHomeGone }: { isHomeGone: boolean },
): Promise<void> {
  if (!isHomeGone) await addRemains(tx, computer);
  await execute(tx, 'DELETE FROM computers WHERE id = ?', [computer.id]);
  await succeed(tx, computer, ['deleteComputer']);
}

/** Books all minutes that it has begun by then. */
export async function chargeAll(tx: Transaction, computer: Computer, until: Date, config: Pick<Config, 'billing'>) {
  if (computer.startedAt === null) return;
  while (!(await chargeBegun(tx, computer, until, config)));
}
