import type Stripe from 'stripe';
import type { PaymentNotice, ProviderCharge, ProviderCheckout } from './provider.ts';

const checkoutChanges = {
  'checkout.session.completed': 'completed',
  'checkout.session.async_payment_succeeded': 'paid',
  'checkout.session.async_payment_failed': 'failed',
  'checkout.session.expired': 'expired',
} as const;

/** Events of a refund itself, such as its failure. */
const refundEvents = new Set(['charge.refund.updated', 'refund.created', 'refund.updated', 'refund.failed']);

/** Reads an event in Stripe's shape. The development provider uses it too. */
export function readStripeNotice(payload: string): PaymentNotice {
  const event = JSON.parse(payload) as { type: string; data?: { object?: object } };
  const object = event.data?.object;
  if (object === undefined || object === null) return { kind: 'other' };
  if (event.type in checkoutChanges) {
    const change = checkoutChanges[event.type as keyof typeof checkoutChanges];
    return { kind: 'checkout', change, checkout: readSession(object as Stripe.Checkout.Session) };
  }
  if (event.type === 'charge.refunded') {
    const charge = object as Stripe.Charge;
    return {
      kind: 'refunded',
      paymentId: idOf(charge.payment_intent),
      checkoutId: charge.metadata?.checkoutId ?? null,
    };
  }
  if (refundEvents.has(event.type)) {
    const refund = object as Stripe.Refund;
    return {
      kind: 'refunded',
      paymentId: idOf(refund.payment_intent),
      checkoutId: refund.metadata?.checkoutId ?? null,
    };
  }
  if (event.type === 'payment_intent.succeeded') {
    return { kind: 'charged', ...readCharge(object as Stripe.PaymentIntent) };
  }
  if (event.type.startsWith('charge.dispute.')) return readDispute(object as Stripe.Dispute, event.type);
  return { kind: 'other' };
}

export function readSession(session: Stripe.Checkout.Session): ProviderCheckout {
  return {
    sessionId: session.id,
    checkoutId: session.client_reference_id ?? null,
    status: session.status === 'complete' ? 'complete' : session.status === 'expired' ? 'expired' : 'open',
    paid: session.payment_status === 'paid',
    amountMinor: session.amount_total ?? 0,
    currency: (session.currency ?? '').toLowerCase(),
    paymentId: idOf(session.payment_intent),
  };
}

export function readCharge(intent: Stripe.PaymentIntent): ProviderCharge {
  return {
    paymentId: intent.id,
    checkoutId: intent.metadata.checkoutId ?? null,
    amountMinor: intent.amount_received,
    currency: intent.currency.toLowerCase(),
  };
}

/** An inquiry (`warning_…`) takes no money. A dispute takes it at once, and gives it back if we win. */
function readDispute(dispute: Stripe.Dispute, type: string): PaymentNotice {
  const returned = type === 'charge.dispute.funds_reinstated' || dispute.status === 'won';
  return {
    kind: 'dispute',
    disputeId: dispute.id,
    paymentId: idOf(dispute.payment_intent),
    amountMinor: dispute.amount,
    taken: returned || type === 'charge.dispute.funds_withdrawn' || !dispute.status.startsWith('warning_'),
    returned,
  };
}

function idOf(reference: string | { id: string } | null | undefined): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null);
}
