import { onFirstUse } from '../onFirstUse.ts';
import { readCharge, readSession, readStripeNotice } from './notices.ts';
import { type PaymentProvider, PaymentProviderError } from './provider.ts';
import { loadStripe } from './webhookSignature.ts';

/** The version that this code was written for. A newer library must not change it without notice. */
const stripeApiVersion = '2026-10-28.endive';

const callTimeoutMs = 20_000;
const pageSize = 100;

export interface StripeProvider extends PaymentProvider {
  /** Rejects if Stripe does not accept the key. */
  checkAccess(): Promise<void>;
}

/** Stripe, through its own library. `address` is for tests, with stripe-mock instead of the real service. */
export function createStripeProvider(options: { secretKey: string; address?: URL | undefined }): StripeProvider {
  const { secretKey, address } = options;
  const client = onFirstUse(async () => {
    const Stripe = await loadStripe();
    return new Stripe(secretKey, {
      apiVersion: stripeApiVersion,
      timeout: callTimeoutMs,
      // The activity retries too, safely thanks to idempotency keys.
      maxNetworkRetries: 1,
      telemetry: false,
      ...(address !== undefined && {
        host: address.hostname,
        port: address.port,
        protocol: address.protocol === 'https:' ? 'https' : 'http',
      }),
    });
  });

  return {
    name: 'stripe',

    async checkAccess() {
      const stripe = await client();
      await call(() => stripe.checkout.sessions.list({ limit: 1 }));
    },

    async createCustomer({ spaceId, name, email }) {
      const stripe = await client();
      const customer = await call(() =>
        stripe.customers.create(
          { name, metadata: { spaceId }, ...(email !== undefined && { email }) },
          { idempotencyKey: `customer:${spaceId}` },
        ),
      );
      return { id: customer.id };
    },

    async createCheckout({ checkoutId, spaceId, customerId, amountMinor, currency, successUrl, cancelUrl, expiresAt }) {
      const stripe = await client();
      const metadata = { checkoutId, spaceId };
      const session = await call(() =>
        stripe.checkout.sessions.create(
          {
            mode: 'payment',
            customer: customerId,
            client_reference_id: checkoutId,
            metadata,
            // The charge has this metadata too, and so has the notification of a refund.
            payment_intent_data: { metadata, setup_future_usage: 'off_session' },
            line_items: [
              {
                quantity: 1,
                price_data: { currency, unit_amount: amountMinor, product_data: { name: 'Credits' } },
              },
            ],
            success_url: successUrl,
            cancel_url: cancelUrl,
            expires_at: Math.floor(expiresAt.getTime() / 1_000),
          },
          { idempotencyKey: `checkout:${checkoutId}` },
        ),
      );
      if (session.url === null) {
        throw new PaymentProviderError('The session has no address.', { permanent: true });
      }
      return { id: session.id, url: session.url };
    },

    async findCheckout(sessionId) {
      const stripe = await client();
      const session = await absentIsUndefined(() => stripe.checkout.sessions.retrieve(sessionId));
      return session && readSession(session);
    },

    async checkoutOfPayment(paymentId) {
      const stripe = await client();
      const found = await absentIsUndefined(() =>
        stripe.checkout.sessions.list({ payment_intent: paymentId, limit: 1 }),
      );
      const session = found?.data[0];
      return session && readSession(session);
    },

    async expireCheckout(sessionId) {
      const stripe = await client();
      await absentIsUndefined(async () => {
        const session = await stripe.checkout.sessions.retrieve(sessionId);
        if (session.status === 'open') await stripe.checkout.sessions.expire(sessionId);
      });
    },

    async refundsOf(paymentId) {
      const stripe = await client();
      const refunds = await call(() =>
        stripe.refunds.list({ payment_intent: paymentId, limit: pageSize }).autoPagingToArray({ limit: 10_000 }),
      );
      return refunds.map(({ id, amount, status }) => ({
        id,
        amountMinor: amount,
        returned: status === 'failed' || status === 'canceled',
      }));
    },

    async charge({ checkoutId, spaceId, customerId, amountMinor, currency }) {
      const stripe = await client();
      const methods = await call(() => stripe.customers.listPaymentMethods(customerId, { limit: 1 }));
      const method = methods.data[0];
      if (method === undefined) return { status: 'refused', paymentId: null };
      try {
        const intent = await stripe.paymentIntents.create(
          {
            amount: amountMinor,
            currency,
            customer: customerId,
            payment_method: method.id,
            off_session: true,
            confirm: true,
            metadata: { checkoutId, spaceId },
          },
          { idempotencyKey: `charge:${checkoutId}` },
        );
        return { status: intent.status === 'succeeded' ? 'paid' : 'refused', paymentId: intent.id };
      } catch (error) {
        const refusal = await errorOf(error, 'StripeCardError');
        if (refusal !== undefined) return { status: 'refused', paymentId: refusal.payment_intent?.id ?? null };
        throw await normalise(error);
      }
    },

    async *checkoutsSince(after) {
      const stripe = await client();
      const created = { gte: Math.floor(after.getTime() / 1_000) };
      try {
        for await (const session of stripe.checkout.sessions.list({ created, limit: pageSize })) {
          yield readSession(session);
        }
      } catch (error) {
        throw await normalise(error);
      }
    },

    async *chargesSince(after) {
      const stripe = await client();
      const created = { gte: Math.floor(after.getTime() / 1_000) };
      try {
        for await (const intent of stripe.paymentIntents.list({ created, limit: pageSize })) {
          if (intent.status === 'succeeded') yield readCharge(intent);
        }
      } catch (error) {
        throw await normalise(error);
      }
    },

    readNotice: readStripeNotice,
  };
}

async function call<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await normalise(error);
  }
}

async function absentIsUndefined<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if ((await errorOf(error, 'StripeError'))?.statusCode === 404) return undefined;
    throw await normalise(error);
  }
}

/** Translates Stripe's errors. Their text may quote user input, so only the kind is passed on. */
async function normalise(error: unknown): Promise<unknown> {
  const failure = await errorOf(error, 'StripeError');
  if (failure === undefined) return error;
  const status = failure.statusCode ?? 0;
  const permanent = status >= 400 && status < 500 && status !== 409 && status !== 429;
  return new PaymentProviderError(`Stripe answered ${status || 'nothing'} (${failure.code ?? failure.type}).`, {
    permanent,
  });
}

/** The error if it is one of Stripe's of this kind, otherwise undefined. */
async function errorOf(error: unknown, kind: 'StripeError' | 'StripeCardError') {
  const Stripe = await loadStripe();
  return error instanceof Stripe.errors[kind] ? error : undefined;
}
