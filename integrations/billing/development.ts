import { readStripeNotice } from './notices.ts';
import type { PaymentProvider, ProviderCheckout } from './provider.ts';

/** A payment as this provider stores it. */
interface KeptPayment {
  sessionId: string;
  paymentId: string;
  checkoutId: string;
  spaceId: string;
  amountMinor: number;
  currency: string;
  status: 'open' | 'complete' | 'expired';
  paymentStatus: 'unpaid' | 'paid';
  successUrl: string;
  cancelUrl: string;
}

/** Stores payments. models/billing/developmentPayments.ts implements it on the database. */
export interface DevelopmentStore {
  find(by: 'session_id' | 'payment_id' | 'checkout_id', value: string): Promise<KeptPayment | undefined>;
  make(fresh: {
    checkoutId: string;
    spaceId: string;
    amountMinor: number;
    currency: string;
    successUrl: string;
    cancelUrl: string;
    expiresAt: Date;
  }): Promise<KeptPayment>;
  finish(sessionId: string, end: Pick<KeptPayment, 'status' | 'paymentStatus'>): Promise<boolean>;
  since(after: Date): Promise<KeptPayment[]>;
}

/**
 * Stands in for a payment provider if none is configured. Its page asks a person to click pay, fail or cancel, and the
 * same signed notifications go to the same endpoint. No money moves.
 */
export function createDevelopmentProvider(options: { store: DevelopmentStore; publicUrl: string }): PaymentProvider {
  const { store, publicUrl } = options;
  return {
    name: 'development',
    createCustomer: async ({ spaceId }) => ({ id: `cus_dev_${spaceId}` }),
    async createCheckout({ checkoutId, spaceId, amountMinor, currency, successUrl, cancelUrl, expiresAt }) {
      const kept = await store.make({ checkoutId, spaceId, amountMinor, currency, successUrl, cancelUrl, expiresAt });
      return { id: kept.sessionId, url: `${publicUrl}/api/billing/development/${kept.sessionId}` };
    },
    findCheckout: async (sessionId) => asCheckout(await store.find('session_id', sessionId)),
    checkoutOfPayment: async (paymentId) => asCheckout(await store.find('payment_id', paymentId)),
    async expireCheckout(sessionId) {
      await store.finish(sessionId, { status: 'expired', paymentStatus: 'unpaid' });
    },
    // Its page refunds nothing.
    refundsOf: async () => [],
    charge: async ({ checkoutId }) => ({ status: 'paid', paymentId: `pi_dev_${checkoutId}` }),
    async *checkoutsSince(after) {
      for (const kept of await store.since(after)) yield toCheckout(kept);
    },
    // A charge completes within its own call, so none can be missed.
    async *chargesSince() {},
    readNotice: readStripeNotice,
  };
}

function asCheckout(kept: KeptPayment | undefined): ProviderCheckout | undefined {
  return kept && toCheckout(kept);
}

function toCheckout(kept: KeptPayment): ProviderCheckout {
  const { sessionId, checkoutId, status, amountMinor, currency, paymentId } = kept;
  return { sessionId, checkoutId, status, amountMinor, currency, paymentId, paid: kept.paymentStatus === 'paid' };
}

/**
 * An event in Stripe's shape about a payment's session. The id depends only on the session and the type, so sending it
 * twice is one event.
 */
export function sessionEvent(
  kept: KeptPayment,
  type:
    | 'checkout.session.completed'
    | 'checkout.session.async_payment_succeeded'
    | 'checkout.session.async_payment_failed'
    | 'checkout.session.expired',
): string {
  const object = {
    id: kept.sessionId,
    object: 'checkout.session',
    client_reference_id: kept.checkoutId,
    metadata: { checkoutId: kept.checkoutId, spaceId: kept.spaceId },
    status: kept.status,
    payment_status: kept.paymentStatus,
    payment_intent: kept.paymentId,
    amount_total: kept.amountMinor,
    currency: kept.currency,
  };
  const created = Math.floor(Date.now() / 1_000);
  return JSON.stringify({ id: `evt_${type}_${kept.sessionId}`, object: 'event', type, created, data: { object } });
}
