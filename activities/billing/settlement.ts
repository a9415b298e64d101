import type { Payments } from '../../integrations/billing/index.ts';
import type { PaymentNotice, PaymentProvider, ProviderCheckout } from '../../integrations/billing/provider.ts';
import {
  type Checkout,
  creditCheckout,
  findCheckout,
  markCheckout,
  paymentSourceId,
} from '../../models/billing/checkouts.ts';
import { shareOf } from '../../models/billing/money.ts';
import { type Finding, findEvent, markSettled, noteFinding } from '../../models/billing/paymentEvents.ts';
import { type Reversal, reverse } from '../../models/billing/reversals.ts';
import { type Database, transaction } from '../../models/database/database.ts';

export interface SettlementDeps {
  database: Database;
  payments: Pick<Payments, 'provider'>;
}

/** The outcome of a notification. An `unexplained` one has a finding for the operator. */
export interface Settled {
  outcome: 'credited' | 'unchanged' | 'ended' | 'reversed' | 'ignored' | 'unexplained' | 'known';
  /** Its workflow should be told. */
  checkout?: Checkout;
}

/**
 * Applies a stored notification, once: the ledger, the checkout and the event's mark are one commit. The notification
 * only hints where to look, so repeated or outdated ones change nothing.
 */
export async function settleEvent(deps: SettlementDeps, eventId: string): Promise<Settled> {
  const { database, payments } = deps;
  const event = await findEvent(database, eventId);
  if (event === undefined || event.status === 'settled') return { outcome: 'known' };
  if (payments.provider === undefined) throw new Error('No payment provider is configured to settle this event with.');
  const notice = payments.provider.readNotice(event.payload);
  switch (notice.kind) {
    case 'checkout':
      return settleCheckout(deps, eventId, notice);
    case 'charged':
      return settleCharge(deps, eventId, notice);
    case 'refunded':
      return settleRefunds(deps, payments.provider, eventId, notice);
    case 'dispute':
      return settleDispute(deps, payments.provider, eventId, notice);
    case 'other':
      return mark(database, eventId, { outcome: 'ignored' });
  }
}

type NoticeOf<Kind extends PaymentNotice['kind']> = Extract<PaymentNotice, { kind: Kind }>;

async function settleCheckout(
  { database }: SettlementDeps,
  eventId: string,
  { change, checkout: session }: NoticeOf<'checkout'>,
): Promise<Settled> {
  const checkout = await checkoutOfSession(database, session);
  const isPaid = session.paid || change === 'paid';
  if (checkout === undefined) {
    return isPaid
      ? unexplained(database, eventId, 'PAID_SESSION_OF_NO_CHECKOUT', session.sessionId)
      : unexplained(database, eventId);
  }
  if (isPaid) {
    if (!isSameAmount(checkout, session)) return otherAmount(database, eventId, checkout, session.sessionId);
    return transaction(database, async (tx) => {
      const credited = await creditCheckout(tx, checkout.id, session);
      const outcome = credited ? 'credited' : 'unchanged';
      await markSettled(tx, eventId, outcome);
      return { outcome, checkout };
    });
  }
  return transaction(database, async (tx) => {
    const status = change === 'expired' ? 'expired' : change === 'failed' ? 'failed' : 'processing';
    const changed = await markCheckout(tx, checkout.id, status);
    const outcome = changed ? 'ended' : 'unchanged';
    await markSettled(tx, eventId, outcome);
    return { outcome, checkout };
  });
}

/**
 * Settles a charge of the saved means of payment. The payment of a checkout session is reported by the session's own
 * notifications.
 */
async function settleCharge(
  { database }: SettlementDeps,
  eventId: string,
  { paymentId, checkoutId, amountMinor, currency }: NoticeOf<'charged'>,
): Promise<Settled> {
  const checkout = checkoutId === null ? undefined : await findCheckout(database, 'id', checkoutId);
  if (checkout?.kind !== 'autoTopUp') return mark(database, eventId, { outcome: 'ignored' });
  if (!isSameAmount(checkout, { amountMinor, currency })) return otherAmount(database, eventId, checkout, paymentId);
  return transaction(database, async (tx) => {
    const credited = await creditCheckout(tx, checkout.id, { sessionId: null, paymentId });
    const outcome = credited ? 'credited' : 'unchanged';
    await markSettled(tx, eventId, outcome);
    return { outcome, checkout };
  });
}

async function settleRefunds(
  { database }: SettlementDeps,
  provider: PaymentProvider,
  eventId: string,
  { paymentId, checkoutId }: NoticeOf<'refunded'>,
): Promise<Settled> {
  const paid = await paidCheckout(database, provider, paymentId, checkoutId);
  if (paid === undefined || paymentId === null) return unexplained(database, eventId);
  // The event has only a sum. The provider lists the single refunds, and each is booked once.
  const refunds = await provider.refundsOf(paymentId);
  return settleReversals(
    database,
    eventId,
    paid,
    refunds.map(({ id, ...refund }) => ({ ...refund, sourceId: `refund:${id}`, kind: 'refund' })),
  );
}

async function settleDispute(
  { database }: SettlementDeps,
  provider: PaymentProvider,
  eventId: string,
  { disputeId, paymentId, taken, amountMinor, returned }: NoticeOf<'dispute'>,
): Promise<Settled> {
  if (!taken) return mark(database, eventId, { outcome: 'ignored' });
  const paid = await paidCheckout(database, provider, paymentId, null);
  if (paid === undefined) return unexplained(database, eventId);
  const dispute = { sourceId: `dispute:${disputeId}`, kind: 'dispute', amountMinor, returned } as const;
  return settleReversals(database, eventId, paid, [dispute]);
}

/** A refund or dispute shows that the payment went through, even if no notification said so before. */
async function settleReversals(
  database: Database,
  eventId: string,
  { checkout, ...paid }: PaidCheckout,
  reversals: readonly (Omit<Reversal, 'micro'> & { amountMinor: number })[],
): Promise<Settled> {
  return transaction(database, async (tx) => {
    await creditCheckout(tx, checkout.id, paid);
    const { spaceId, microCredits } = checkout;
    const payment = { spaceId, sourceId: paymentSourceId(paid), micro: microCredits, detail: checkout.id };
    let changed = false;
    for (const { amountMinor, ...reversal } of reversals) {
      const micro = shareOf(microCredits, Math.min(amountMinor, checkout.amountMinor), checkout.amountMinor);
      changed = (await reverse(tx, payment, { ...reversal, micro })) || changed;
    }
    const outcome = changed ? 'reversed' : 'unchanged';
    await markSettled(tx, eventId, outcome);
    return { outcome, checkout };
  });
}

interface PaidCheckout {
  checkout: Checkout;
  sessionId: string | null;
  paymentId: string | null;
}

async function paidCheckout(
  database: Database,
  provider: PaymentProvider,
  paymentId: string | null,
  checkoutId: string | null,
): Promise<PaidCheckout | undefined> {
  if (paymentId === null) return undefined;
  const known =
    (await findCheckout(database, 'payment_id', paymentId)) ??
    (checkoutId === null ? undefined : await findCheckout(database, 'id', checkoutId));
  if (known?.kind === 'autoTopUp') return { checkout: known, sessionId: null, paymentId };
  if (known !== undefined && known.sessionId !== null)
    return { checkout: known, sessionId: known.sessionId, paymentId };
  // The session may not be stored: after a crash, or before its notification. The provider knows it.
  const session = await provider.checkoutOfPayment(paymentId);
  const checkout = session && (await checkoutOfSession(database, session));
  if (session === undefined || checkout === undefined || !isSameAmount(checkout, session)) return undefined;
  return { checkout, sessionId: session.sessionId, paymentId };
}

/** Finds a checkout by its session, or by the session's reference if a crash came before the session was stored. */
export async function checkoutOfSession(database: Database, session: ProviderCheckout): Promise<Checkout | undefined> {
  const bySession = await findCheckout(database, 'session_id', session.sessionId);
  if (bySession !== undefined || session.checkoutId === null) return bySession;
  const byReference = await findCheckout(database, 'id', session.checkoutId);
  // Another notification may have stored the session meanwhile.
  const isOfSession = byReference?.sessionId === null || byReference?.sessionId === session.sessionId;
  return isOfSession ? byReference : undefined;
}

export function isSameAmount(
  checkout: Checkout,
  { amountMinor, currency }: Pick<ProviderCheckout, 'amountMinor' | 'currency'>,
): boolean {
  return checkout.amountMinor === amountMinor && checkout.currency === currency;
}

/**
 * Handles a payment of another amount than asked for: ends the checkout as mispaid, credits nothing, and notes it for
 * the operator. Returns whether that is new. `subjectId` is the session's id or, without a session, the charge's.
 */
export async function fileOtherAmount(database: Database, checkout: Checkout, subjectId: string): Promise<boolean> {
  await noteFinding(database, subjectId, 'PAID_OTHER_AMOUNT');
  return transaction(database, (tx) => markCheckout(tx, checkout.id, 'mispaid'));
}

async function otherAmount(
  database: Database,
  eventId: string,
  checkout: Checkout,
  subjectId: string,
): Promise<Settled> {
  await fileOtherAmount(database, checkout, subjectId);
  return mark(database, eventId, { outcome: 'unexplained', checkout });
}

async function unexplained(
  database: Database,
  eventId: string,
  finding: Finding = 'EVENT_OF_NO_CHECKOUT_OF_OURS',
  subjectId = eventId,
): Promise<Settled> {
  await noteFinding(database, subjectId, finding);
  return mark(database, eventId, { outcome: 'unexplained' });
}

async function mark(database: Database, eventId: string, settled: Settled): Promise<Settled> {
  await transaction(database, (tx) => markSettled(tx, eventId, settled.outcome));
  return settled;
}
