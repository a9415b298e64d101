import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/** A notification of the payment provider, stored for ever. */
export interface PaymentEventRow {
  id: string;
  provider: string;
  type: string;
  payload: string;
  status: 'received' | 'settled';
  outcome: string | null;
}

/** Keeps a verified notification. False when this event has been kept before. */
export async function keepEvent(
  database: Database,
  event: Pick<PaymentEventRow, 'id' | 'provider' | 'type' | 'payload'>,
): Promise<boolean> {
  const [result] = await database.pool.query(
    `INSERT IGNORE INTO payment_events (id, provider, type, payload, status, received_at) VALUES (?)`,
    [[event.id, event.provider, event.type.slice(0, 100), event.payload, 'received', new Date()]],
  );
  return (result as { affectedRows: number }).affectedRows === 1;
}

const fields = 'id, provider, type, payload, status, outcome';

export async function findEvent(database: Database, id: string): Promise<PaymentEventRow | undefined> {
  const [rows] = await database.pool.query(`SELECT ${fields} FROM payment_events WHERE id = ?`, [id]);
  return (rows as PaymentEventRow[])[0];
}

/** Marks it as settled, in the transaction that applied it. False when it was already settled. */
export async function markSettled(tx: Transaction, id: string, outcome: string): Promise<boolean> {
  const result = await execute(
    tx,
    "UPDATE payment_events SET status = 'settled', outcome = ?, settled_at = ? WHERE id = ? AND status = 'received'",
    [outcome, new Date(), id],
  );
  return result.affectedRows === 1;
}

/** Notifications that have not been settled. */
export const unsettledEvents = waitingIn<Waiting>({
  table: 'payment_events',
  where: "status = 'received'",
  time: 'received_at',
});

/** What the provider says and our books do not explain. Each case has one name, wherever it is found. */
export type Finding =
  /** A session or a charge that is paid, and belongs to no checkout. */
  | 'PAID_SESSION_OF_NO_CHECKOUT'
  | 'PAID_CHARGE_OF_NO_CHECKOUT'
  /** Its checkout asked for another amount. */
  | 'PAID_OTHER_AMOUNT'
  | 'CREDITED_BUT_NOT_PAID'
  /** Any other notification that does not refer to anything of ours. */
  | 'EVENT_OF_NO_CHECKOUT_OF_OURS'
  /** A checkout whose session the provider does not know (any more). */
  | 'CHECKOUT_UNKNOWN_TO_PROVIDER'
  /** A checkout that its buyer completed, and whose payment neither came nor failed. */
  | 'PAYMENT_NEVER_CAME';

/**
 * Records what cannot be explained, for the operator; once for each subject: a session, a charge, or an event that
 * names neither.
 */
export async function noteFinding(database: Database, subjectId: string, finding: Finding): Promise<boolean> {
  const [result] = await database.pool.query(
    'INSERT IGNORE INTO payment_findings (subject_id, finding, found_at) VALUES (?)',
    [[subjectId, finding, new Date()]],
  );
  return (result as { affectedRows: number }).affectedRows === 1;
}

export async function lockState(tx: Transaction, name: 'initialCredits'): Promise<void> {
  await select(tx, 'SELECT value FROM billing_state WHERE name = ? FOR UPDATE', [name]);
}
