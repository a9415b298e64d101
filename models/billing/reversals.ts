import type { Transaction } from 'sequelize';
import { execute, select } from '../database/sql.ts';
import { incoming } from './debt.ts';
import { addGrant, burn, expireGrants, priorities } from './grants.ts';
import { type Balances, lockBalances, post } from './ledger.ts';

/** Money that went back to the payer, or is held back during a dispute. */
export interface Reversal {
  /** `refund:re_…` or `dispute:dp_…`. */
  sourceId: string;
  kind: 'refund' | 'dispute';
  micro: number;
  /** The money came back to us: the refund failed, or we won the dispute. This is final, whatever is reported later. */
  returned: boolean;
}

/** The reversed payment, and the credits that it brought. */
export interface ReversedPayment {
  spaceId: string;
  sourceId: string;
  micro: number;
  detail: string;
}

/**
 * Books a payment's reversals. The space keeps the part that no reversal takes. Refunds and disputes of a payment
 * together never take more than it brought, and the order of reports does not matter. Returns whether this call booked
 * something.
 */
export async function reverse(tx: Transaction, payment: ReversedPayment, reversal: Reversal): Promise<boolean> {
  const balances = await lockBalances(tx, payment.spaceId);
  const { others, own } = await readReversals(tx, payment.sourceId, reversal.sourceId);
  const returned = reversal.returned || own?.returned === 1;
  if (own !== undefined && (own.returned === 1) === returned) return false;
  await save(tx, payment.sourceId, { ...reversal, returned });
  const ownBefore = own === undefined ? 0 : own.micro;
  const ownAfter = returned ? 0 : reversal.micro;
  const change = Math.min(payment.micro, others + ownAfter) - Math.min(payment.micro, others + ownBefore);
  if (change > 0) await take(tx, balances, payment, reversal, change);
  else if (change < 0) await giveAgain(tx, balances, payment, reversal, -change);
  return change !== 0;
}

async function readReversals(tx: Transaction, paymentSourceId: string, sourceId: string) {
  const rows = await select<{ sourceId: string; micro: number; returned: number }>(
    tx,
    'SELECT source_id, amount AS micro, returned FROM billing_reversals WHERE payment_source_id = ?',
    [paymentSourceId],
  );
  const own = rows.find((row) => row.sourceId === sourceId);
  const others = rows.filter((row) => row !== own && row.returned === 0).reduce((sum, { micro }) => sum + micro, 0);
  return { others, own };
}

async function save(tx: Transaction, paymentSourceId: string, reversal: Reversal): Promise<void> {
  const { sourceId, kind, micro, returned } = reversal;
  await execute(
    tx,
    `INSERT INTO billing_reversals (source_id, payment_source_id, kind, amount, returned, created_at) VALUES (?)
      ON DUPLICATE KEY UPDATE returned = VALUES(returned)`,
    [[sourceId, paymentSourceId, kind, micro, Number(returned), new Date()]],
  );
}

/**
 * Takes first from the grant of that payment, then from the space's other grants. A part that was already spent becomes
 * debt.
 */
async function take(
  tx: Transaction,
  balances: Balances,
  payment: ReversedPayment,
  { sourceId, kind }: Reversal,
  micro: number,
): Promise<void> {
  await expireGrants(tx, balances);
  const taken = Math.min(micro, balances.available);
  await burn(tx, balances, taken, payment.sourceId);
  await post(tx, { sourceId, kind, detail: payment.detail }, [
    { of: balances, account: 'paid', change: -micro },
    { of: balances, account: 'available', change: -taken },
    { of: balances, account: 'debt', change: micro - taken },
  ]);
}

async function giveAgain(
  tx: Transaction,
  balances: Balances,
  payment: ReversedPayment,
  reversal: Reversal,
  micro: number,
): Promise<void> {
  const sourceId = `${reversal.sourceId}:returned`;
  const { debtPaid, lines } = incoming(balances, micro);
  if (micro > debtPaid) await addGrant(tx, balances, { sourceId, micro: micro - debtPaid, priority: priorities.paid });
  await post(tx, { sourceId, kind: 'reinstatement', detail: payment.detail }, [
    { of: balances, account: 'paid', change: micro },
    ...lines,
  ]);
}
