import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { execute } from '../database/sql.ts';
import { activeStatuses, type Computer, type ComputerSettings, limitsOf } from './computer.ts';
import { mustMove, placeComputer } from './placing.ts';

export function isActive({ status }: Pick<Computer, 'status'>): boolean {
  return (activeStatuses as readonly string[]).includes(status);
}

/** Throws 409 `COMPUTER_BUSY` while its home is being made or replaced. */
export function requireQuietHome({ wish }: Pick<Computer, 'wish'>): void {
  if (wish !== 'fork' && wish !== 'restore') return;
  const work = wish === 'fork' ? 'copied' : 'restored';
  const detail = `The home of the computer is being ${work}. Try again in a moment.`;
  throw new DomainError('conflict', 'COMPUTER_BUSY', detail, { retryAfterSeconds: 1 });
}

/**
 * Begins the next generation, and takes its place on a host. If its host lacks a label of it, it is ordered to move
 * first, and starts then. Throws 503 if no host can run it.
 */
export async function beginStart(
  tx: Transaction,
  computer: Computer,
  config: Pick<Config, 'computers'>,
): Promise<void> {
  if (await mustMove(tx, computer, config)) {
    return change(tx, computer, { wish: 'move', wakesAfterMove: true, errorCode: null, errorDetail: null });
  }
  const hostId = await placeComputer(tx, computer, limitsOf(computer, config).driver, config);
  await change(tx, computer, {
    hostId,
    status: 'starting',
    generation: computer.generation + 1,
    startedAt: null,
    aliveAt: null,
    ranMs: 0,
    minutesCharged: 0,
    errorCode: null,
    errorDetail: null,
  });
}

type Changeable = Omit<
  Computer,
  | keyof ComputerSettings
  | 'id'
  | 'spaceId'
  | 'name'
  | 'labels'
  | 'envNames'
  | 'statusAt'
  | 'forkedFrom'
  | 'createdBy'
  | 'createdAt'
>;

/** Changes a locked computer, in its row and in this object. A change of status or wish sets `statusAt`. */
export async function change(tx: Transaction, computer: Computer, changes: Partial<Changeable>): Promise<void> {
  const isMoved =
    (changes.status ?? computer.status) !== computer.status || ('wish' in changes && changes.wish !== computer.wish);
  const row = { ...changes, ...(isMoved && { statusAt: new Date() }) };
  Object.assign(computer, row);
  await execute(tx, 'UPDATE computers SET ? WHERE id = ?', [row, computer.id]);
}
