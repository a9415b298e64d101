import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import { topUp } from './credits.ts';

/** `mispaid`: another amount was paid than asked for. Nothing is credited until a person has checked it. */
export type CheckoutStatus =
  | 'creating'
  | 'open'
  | 'processing'
  | 'paid'
  | 'mispaid'
  | 'failed'
  | 'expired'
  | 'cancelled';

/** One purchase of credits: a hosted checkout, or a charge of the saved means of payment (`autoTopUp`). */
export interface Checkout {
  id: string;
  kind: 'topUp' | 'autoTopUp';
  spaceId: string;
  userId: string;
  status: CheckoutStatus;
  /** In the currency's smallest unit. */
  amountMinor: number;
  currency: string;
  microCredits: number;
  provider: string;
  sessionId: string | null;
  paymentId: string | null;
  url: string | null;
  /** The buyer goes on to this page. It was checked when it was given. */
  returnUrl: string | null;
  operationId: string;
  createdAt: Date;
  expiresAt: Date;
  endedAt: Date | null;
}

const fields = `id, kind, space_id, user_id, status, amount_minor, currency, micro_credits, provider, session_id,
  payment_id, url, return_url, operation_id, created_at, expires_at, ended_at`;

type By = 'id' | 'session_id' | 'payment_id';

export async function findCheckout(database: Database, by: By, value: string): Promise<Checkout | undefined> {
  const [row] = await select<Checkout>(database.pool, `SELECT ${fields} FROM billing_checkouts WHERE ${by} = ?`, [
    value,
  ]);
  return row;
}

/** Running operations whose purchase is over. */
export const endedCheckouts = waitingIn<Waiting>({
  table: 'operations',
  index: 'operations_kind_sweep',
  // A scalar subquery instead of EXISTS, which would become a join that begins with all purchases ever made.
  where: `status = 'running' AND kind = 'topUp'
    AND (SELECT c.ended_at FROM billing_checkouts c WHERE c.id = operations.subject_id) IS NOT NULL`,
  time: 'created_at',
});

/** A space's purchases, newest first. */
export async function listCheckouts(database: Database, spaceId: string, page: PageRequest): Promise<Page<Checkout>> {
  const sql = `SELECT ${fields} FROM billing_checkouts WHERE space_id = ?`;
  return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'desc' });
}

async function lockCheckout(tx: Transaction, id: string): Promise<Checkout | undefined> {
  return (await select<Checkout>(tx, `SELECT ${fields} FROM billing_checkouts WHERE id = ? FOR UPDATE`, [id]))[0];
}

export async function insertCheckout(
  tx: Transaction,
  checkout: Omit<Checkout, 'status' | 'sessionId' | 'paymentId' | 'url' | 'returnUrl' | 'endedAt'> & {
    returnUrl?: string | undefined;
  },
): Promise<void> {
  await insert(tx, 'billing_checkouts', {
    id: checkout.id,
    kind: checkout.kind,
    spaceId: checkout.spaceId,
    userId: checkout.userId,
    status: 'creating',
    amountMinor: checkout.amountMinor,
    currency: checkout.currency,
    microCredits: checkout.microCredits,
    provider: checkout.provider,
    operationId: checkout.operationId,
    returnUrl: checkout.returnUrl ?? null,
    createdAt: checkout.createdAt,
    expiresAt: checkout.expiresAt,
  });
}

/** Stores the session that the provider opened. */
export async function markOpen(tx: Transaction, id: string, session: { id: string; url: string }): Promise<void> {
  const checkout = await lockCheckout(tx, id);
  if (checkout === undefined || checkout.sessionId !== null) return;
  const status = checkout.status === 'creating' ? 'open' : checkout.status;
  await execute(tx, 'UPDATE billing_checkouts SET session_id = ?, url = ?, status = ? WHERE id = ?', [
    session.id,
    session.url,
    status,
    id,
  ]);
}

/** The ledger's name for the payment: by its session or, without one, by the payment itself. */
export function paymentSourceId(checkout: Pick<Checkout, 'sessionId' | 'paymentId'>): string {
  return checkout.sessionId === null ? `payment:${checkout.paymentId}` : `checkout:${checkout.sessionId}`;
}

/** Credits a paid checkout once, and marks it. A payment overrides any other end: money that arrived is credited. */
export async function creditCheckout(
  tx: Transaction,
  id: string,
  paid: { sessionId: string | null; paymentId: string | null },
): Promise<boolean> {
  const checkout = await lockCheckout(tx, id);
  if (checkout === undefined || checkout.status === 'paid') return false;
  const known = {
    sessionId: checkout.sessionId ?? paid.sessionId,
    paymentId: checkout.paymentId ?? paid.paymentId,
  };
  const credited = await topUp(tx, {
    spaceId: checkout.spaceId,
    sourceId: paymentSourceId(known),
    micro: checkout.microCredits,
    userId: checkout.userId,
    detail: `${checkout.kind} ${checkout.id}`,
  });
  await execute(tx, 'UPDATE billing_checkouts SET ? WHERE id = ?', [
    {
      status: 'paid',
      sessionId: known.sessionId,
      paymentId: known.paymentId,
      endedAt: checkout.endedAt ?? new Date(),
    },
    id,
  ]);
  return credited;
}

/**
 * Moves an unpaid checkout to another state. An ended one stays as it is, unless money arrived after its end: `mispaid`
 * overrides `expired`.
 */
export async function markCheckout(
  tx: Transaction,
  id: string,
  status: Extract<CheckoutStatus, 'processing' | 'mispaid' | 'failed' | 'expired' | 'cancelled'>,
): Promise<boolean> {
  const checkout = await lockCheckout(tx, id);
  if (checkout === undefined || checkout.status === 'paid' || checkout.status === status) return false;
  if (checkout.endedAt !== null && status !== 'mispaid') return false;
  await execute(tx, 'UPDATE billing_checkouts SET status = ?, ended_at = ? WHERE id = ?', [
    status,
    status === 'processing' ? null : (checkout.endedAt ?? new Date()),
    id,
  ]);
  return true;
}
