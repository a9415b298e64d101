import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { asRow, execute, select } from '../database/sql.ts';
import { type Computer, limitsOf } from './computer.ts';
import { placeComputer } from './placing.ts';

/** Statuses in which a computer counts against the space's limit of running ones. */
const activeStatuses = ['starting', 'running', 'paused', 'stopping'] as const;

export function isActive({ status }: Pick<Computer, 'status'>): boolean {
  return (activeStatuses as readonly string[]).includes(status);
}

/** Locks the space of computers that are about to run, so that its limit of running ones holds. Throws 404. */
export async function lockSpaceOf(tx: Transaction, spaceId: string): Promise<void> {
  const rows = await select(tx, 'SELECT id FROM spaces WHERE id = ? AND deleted_at IS NULL FOR UPDATE', [spaceId]);
  if (rows.length === 0) throw notFound('space');
}

/** Throws 409 `TOO_MANY_RUNNING` unless one more computer may run. Its space is locked. */
export async function requireRoomToRun(
  tx: Transaction,
  computer: Computer,
  { computers }: Pick<Config, 'computers'>,
): Promise<void> {
  if (isActive(computer)) return;
  const rows = await select(
    tx,
    'SELECT id FROM computers WHERE space_id = ? AND status IN (?) AND deleted_at IS NULL AND id <> ?',
    [computer.spaceId, activeStatuses, computer.id],
  );
  if (rows.length < computers.runningPerSpace) return;
  const detail = `At most ${computers.runningPerSpace} computers of a space run at once. Stop one first.`;
  throw new DomainError('conflict', 'TOO_MANY_RUNNING', detail);
}

/** Begins the next generation, and takes its place on a host. Throws 503 if no host can run it. */
export async function beginStart(
  tx: Transaction,
  computer: Computer,
  config: Pick<Config, 'computers'>,
): Promise<void> {
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

const columnOf = {
  status: 'status',
  wish: 'wish',
  generation: 'generation',
  hostId: 'host_id',
  defaultOf: 'default_of',
  startedAt: 'started_at',
  aliveAt: 'alive_at',
  activeAt: 'active_at',
  usedAt: 'used_at',
  processes: 'processes',
  ranMs: 'ran_ms',
  minutesCharged: 'minutes_charged',
  errorCode: 'error_code',
  errorDetail: 'error_detail',
  deletedAt: 'deleted_at',
} as const satisfies Partial<Record<keyof Computer, string>>;

/** Changes a locked computer, in its row and in this object. A change of status or wish sets `statusAt`. */
export async function change(
  tx: Transaction,
  computer: Computer,
  changes: Partial<Pick<Computer, keyof typeof columnOf>>,
): Promise<void> {
  const row = asRow(columnOf, changes);
  const isMoved =
    (changes.status ?? computer.status) !== computer.status || ('wish' in changes && changes.wish !== computer.wish);
  if (isMoved) {
    computer.statusAt = new Date();
    row.status_at = computer.statusAt;
  }
  Object.assign(computer, changes);
  await execute(tx, 'UPDATE computers SET ? WHERE id = ?', [row, computer.id]);
}
