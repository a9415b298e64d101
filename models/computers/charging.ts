import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import { chargeComputerMinutes } from '../billing/usage.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import type { Computer } from './computer.ts';
import { lockAnyComputer } from './computers.ts';

const minuteMs = 60_000;
/** A transaction books at most this many minutes, so that it locks the balances for a short time. */
const minutesAtOnce = 50;

/** How many minutes this generation has begun until then. Paused time does not count. */
function minutesBegun({ ranMs, startedAt }: Pick<Computer, 'ranMs' | 'startedAt'>, until: Date): number {
  const runs = startedAt === null ? 0 : Math.max(0, until.getTime() - startedAt.getTime());
  return startedAt === null && ranMs === 0 ? 0 : Math.floor((ranMs + runs) / minuteMs) + 1;
}

/**
 * Books the minutes that the computer has begun until then and that are not in the ledger yet. Its row is locked.
 * Returns whether all of them are booked.
 */
export async function chargeBegun(
  tx: Transaction,
  computer: Computer,
  until: Date,
  { billing }: Pick<Config, 'billing'>,
): Promise<boolean> {
  const begun = minutesBegun(computer, until);
  const last = Math.min(begun, computer.minutesCharged + minutesAtOnce);
  if (last <= computer.minutesCharged) return true;
  const { id: computerId, spaceId, generation } = computer;
  await chargeComputerMinutes(tx, billing, {
    spaceId,
    computerId,
    generation,
    from: computer.minutesCharged,
    to: last,
  });
  await execute(tx, 'UPDATE computers SET minutes_charged = ? WHERE id = ?', [last, computerId]);
  computer.minutesCharged = last;
  return last === begun;
}

/** Books all minutes that it has begun until then, in one transaction. */
export async function chargeAll(tx: Transaction, computer: Computer, until: Date, config: Pick<Config, 'billing'>) {
  if (computer.startedAt === null) return;
  while (!(await chargeBegun(tx, computer, until, config)));
}

/** Books all minutes that the host has confirmed, in as many transactions as it takes. */
export async function chargeConfirmed(
  database: Database,
  computerId: string,
  config: Pick<Config, 'billing'>,
): Promise<void> {
  for (let isAll = false; !isAll; ) {
    isAll = await transaction(database, async (tx) => {
      const computer = await lockAnyComputer(tx, computerId);
      if (computer?.status !== 'running' || computer.aliveAt === null) return true;
      return chargeBegun(tx, computer, computer.aliveAt, config);
    });
  }
}
