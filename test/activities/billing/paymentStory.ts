import { randomInt } from 'node:crypto';
import { newId } from '../../../base/ids.ts';
import { insertCheckout, markOpen } from '../../../models/billing/checkouts.ts';
import { type Database, transaction } from '../../../models/database/database.ts';
import type { FakeStripe, Fields } from '../../fakes/stripeServer.ts';

const amountMinor = 1_000;
export const microPerPayment = 1_000_000_000;

/** One purchase, all of Stripe's notifications about it, and the credits that its space keeps. */
export interface PaymentStory {
  spaceId: string;
  events: { type: string; object: Fields }[];
  keptMicro: number;
}

/** Makes a checkout and its ending in the fake Stripe: paid at once or later, refunded, disputed, failed or expired. */
export async function tellStory(database: Database, stripe: FakeStripe, spaceId: string): Promise<PaymentStory> {
  const checkoutId = newId('checkout');
  const sessionId = `cs_test_${checkoutId}`;
  const session: Fields = {
    ...{ id: sessionId, object: 'checkout.session', client_reference_id: checkoutId, metadata: { checkoutId } },
    ...{ amount_total: amountMinor, currency: 'usd', status: 'open', payment_status: 'unpaid', payment_intent: null },
  };
  stripe.sessions.set(sessionId, session);
  const now = new Date();
  await transaction(database, async (tx) => {
    await insertCheckout(tx, {
      ...{ id: checkoutId, kind: 'topUp', spaceId, userId: 'usr_1', amountMinor, currency: 'usd' },
      ...{ microCredits: microPerPayment, provider: 'stripe', operationId: `op_${checkoutId}` },
      ...{ createdAt: now, expiresAt: new Date(now.getTime() + 3_600_000) },
    });
    // One checkout in five crashed before it stored its session.
    if (randomInt(5) > 0) await markOpen(tx, checkoutId, { id: sessionId, url: 'https://example.org' });
  });
  const unpaid = { ...session, status: 'complete' };
  const endings = [
    () => ({ events: [{ type: 'checkout.session.expired', object: { ...session, status: 'expired' } }], keptMicro: 0 }),
    () => ({
      events: [
        { type: 'checkout.session.completed', object: unpaid },
        { type: 'checkout.session.async_payment_failed', object: unpaid },
      ],
      keptMicro: 0,
    }),
    ...Array.from({ length: 6 }, () => () => tellPaid(stripe, session, unpaid)),
  ];
  const ending = endings[randomInt(endings.length)] as () => Omit<PaymentStory, 'spaceId'>;
  return { spaceId, ...ending() };
}

function tellPaid(stripe: FakeStripe, session: Fields, unpaid: Fields): Omit<PaymentStory, 'spaceId'> {
  const paid = stripe.pay(String(session.id));
  const paymentId = String(paid.payment_intent);
  const events: PaymentStory['events'] = [];
  if (randomInt(2) === 0) events.push({ type: 'checkout.session.completed', object: unpaid });
  events.push({ type: 'checkout.session.async_payment_succeeded', object: paid });
  if (randomInt(2) === 0) events.push({ type: 'checkout.session.completed', object: paid });
  let takenMinor = 0;
  for (let refunds = randomInt(3); refunds > 0; refunds--) {
    const amount = randomInt(1, 600);
    const failed = randomInt(4) === 0;
    const refund = stripe.refund(paymentId, amount, failed ? 'failed' : 'succeeded');
    events.push({
      type: 'charge.refunded',
      object: { id: `ch_${paymentId}`, payment_intent: paymentId, metadata: {} },
    });
    if (failed) events.push({ type: 'refund.failed', object: refund });
    else takenMinor += amount;
  }
  if (randomInt(3) === 0) {
    const dispute = { id: `dp_${paymentId}`, object: 'dispute', payment_intent: paymentId, amount: amountMinor };
    const won = randomInt(2) === 0;
    events.push({ type: 'charge.dispute.created', object: { ...dispute, status: 'needs_response' } });
    events.push({ type: 'charge.dispute.closed', object: { ...dispute, status: won ? 'won' : 'lost' } });
    if (!won) takenMinor += amountMinor;
  }
  events.push({ type: 'customer.updated', object: { id: 'cus_1' } });
  const keptMinor = amountMinor - Math.min(amountMinor, takenMinor);
  return { events, keptMicro: keptMinor * (microPerPayment / amountMinor) };
}
