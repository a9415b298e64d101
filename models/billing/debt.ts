import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { burn } from './grants.ts';
import { type Balances, type Line, post } from './ledger.ts';

/** Pays a space's debt from its available credits, so that it never has both. */
export async function coverDebt(tx: Transaction, balances: Balances): Promise<void> {
  const micro = Math.min(balances.debt, balances.available);
  if (micro === 0) return;
  await burn(tx, balances, micro);
  await post(tx, { sourceId: `debt:${newId('ledgerTransaction')}`, kind: 'debtPayment' }, [
    { of: balances, account: 'available', change: -micro },
    { of: balances, account: 'debt', change: -micro },
  ]);
}

/** Splits incoming credits: first to the debt, the rest becomes available. */
export function incoming(balances: Balances, micro: number): { debtPaid: number; lines: Line[] } {
  const debtPaid = Math.min(balances.debt, micro);
  return {
    debtPaid,
    lines: [
      { of: balances, account: 'debt', change: -debtPaid },
      { of: balances, account: 'available', change: micro - debtPaid },
    ],
  };
}
