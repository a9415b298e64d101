import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** A notification of the payment provider, stored forever. */
export interface PaymentEventRow {
  id: string;
  provider: string;
  type: string;
  payload: string;
  status: 'received' | 'settled';
  outcome: string | null;
}

/** Stores a verified notification. False if it was stored before. */
export async function keepEvent(
  database: Database,
  event: Pick<PaymentEventRow, 'id' | 'provider' | 'type' | 'payload'>,
): Promise<boolean> {
  const { affectedRows } = await execute(
    database.pool,
    `INSERT IGNORE INTO payment_events (id, provider, type, payload, status, received_at) VALUES (?)`,
    [[event.id, event.provider, event.type.slice(0, 100), event.payload, 'received', new Date()]],
  );
  return affectedRows === 1;
}

const fields = 'id, provider, type, payload, status, outcome';

export async function findEvent(database: Database, id: string): Promise<PaymentEventRow | undefined> {
  const [row] = await select<PaymentEventRow>(database.pool, `SELECT ${fields} FROM payment_events WHERE id = ?`, [id]);
  return row;
}

/** Marks a notification as settled, in the transaction that applied it. False if it was settled before. */
export async function markSettled(tx: Transaction, id: string, outcome: string): Promise<boolean> {
  const result = await execute(
    tx,
    "UPDATE payment_events SET status = 'settled', outcome = ?, settled_at = ? WHERE id = ? AND status = 'received'",
    [outcome, new Date(), id],
  );
  return result.affectedRows === 1;
}

export const unsettledEvents = waitingIn<Waiting>({
  table: 'payment_events',
  where: "status = 'received'",
  time: 'received_at',
});

/** Statements of the provider that our books do not explain. Each case has one name, wherever it is found. */
export type Finding =
  /** A paid session or charge that belongs to no checkout. */
  | 'PAID_SESSION_OF_NO_CHECKOUT'
  | 'PAID_CHARGE_OF_NO_CHECKOUT'
  /** The checkout asked for another amount. */
  | 'PAID_OTHER_AMOUNT'
  | 'CREDITED_BUT_NOT_PAID'
  /** Any other notification that refers to nothing of ours. */
  | 'EVENT_OF_NO_CHECKOUT_OF_OURS'
  /** A checkout whose session the provider does not know (any more). */
  | 'CHECKOUT_UNKNOWN_TO_PROVIDER'
  /** The buyer completed the checkout, but the payment neither arrived nor failed. */
  | 'PAYMENT_NEVER_CAME';

/** Records a finding for the operator, once for each subject: a session, a charge, or an event that names neither. */
export async function noteFinding(database: Database, subjectId: string, finding: Finding): Promise<boolean> {
  const sql = 'INSERT IGNORE INTO payment_findings (subject_id, finding, found_at) VALUES (?)';
  const { affectedRows } = await execute(database.pool, sql, [[subjectId, finding, new Date()]]);
  return affectedRows === 1;
}
