import { ApplicationFailure } from '@temporalio/activity';
import {
  type PaymentProvider,
  PaymentProviderError,
  type ProviderCheckout,
} from '../../integrations/billing/provider.ts';
import { refuseAutoTopUp } from '../../models/billing/autoTopUp.ts';
import { type Checkout, creditCheckout, findCheckout, markCheckout, markOpen } from '../../models/billing/checkouts.ts';
import { noteFinding } from '../../models/billing/paymentEvents.ts';
import { findSetup, finishSetup, saveCustomer } from '../../models/billing/setup.ts';
import { transaction } from '../../models/database/database.ts';
import { type OperationEnd, operationModels } from '../../models/operations/operation.ts';
import { keepAlive } from '../keepAlive.ts';
import type { BillingDeps } from './deps.ts';
import { fileOtherAmount, isSameAmount } from './settlement.ts';

const dayMs = 86_400_000;
/** A slow payment, such as a bank debit, usually arrives or fails within two weeks. */
const longestPaymentMs = 21 * dayMs;

/** The state that the workflow watches. `over`: nothing more will happen to the checkout. */
export interface CheckoutState {
  status: Checkout['status'];
  over: boolean;
}

/**
 * Activities that set up a space's billing and carry its purchases from the session to their end. Each may be repeated.
 */
export function createCheckoutActivities(deps: BillingDeps) {
  const { database, config } = deps;

  return {
    /** Makes the provider's customer for the space unless it exists. */
    async createBillingCustomer({ spaceId }: { spaceId: string }): Promise<void> {
      using _heartbeat = keepAlive();
      if (deps.payments.provider !== undefined) await customerOf(spaceId, deps.payments.provider);
    },

    async finishBillingSetup({ spaceId, operationId }: { spaceId: string; operationId: string }): Promise<void> {
      await finishSetup(database, spaceId, operationId);
    },

    /** Opens the provider's session of a checkout. */
    async openCheckout({ checkoutId }: { checkoutId: string }): Promise<CheckoutState> {
      using _heartbeat = keepAlive();
      const checkout = await find(checkoutId);
      if (checkout.sessionId !== null || checkout.endedAt !== null) return stateOf(checkout);
      const provider = requireProvider();
      const customerId = await customerOf(checkout.spaceId, provider);
      const pages = `${config.http.publicUrl}/api/billing`;
      const session = await permanentIsFinal(() =>
        provider.createCheckout({
          checkoutId,
          spaceId: checkout.spaceId,
          customerId,
          amountMinor: checkout.amountMinor,
          currency: checkout.currency,
          successUrl: `${pages}/checkout-success?session_id={CHECKOUT_SESSION_ID}`,
          cancelUrl: `${pages}/checkout-cancel?session_id=${checkoutId}`,
          expiresAt: checkout.expiresAt,
        }),
      );
      await transaction(database, (tx) => markOpen(tx, checkoutId, session));
      return stateOf(await find(checkoutId));
    },

    /** Returns the state of a checkout. Asks the provider if it has not ended, and credits it once it is paid. */
    async lookAtCheckout({ checkoutId }: { checkoutId: string }): Promise<CheckoutState> {
      using _heartbeat = keepAlive();
      return look(checkoutId);
    },

    /** Closes a checkout that its buyer cancelled. If it was paid in the meantime, it is credited all the same. */
    async closeCheckout({ checkoutId }: { checkoutId: string }): Promise<void> {
      using _heartbeat = keepAlive();
      const { sessionId, endedAt } = await find(checkoutId);
      if (endedAt !== null) return;
      if (sessionId !== null) await permanentIsFinal(() => requireProvider().expireCheckout(sessionId));
      if (!(await look(checkoutId, 'cancelled')).over) {
        await transaction(database, (tx) => markCheckout(tx, checkoutId, 'cancelled'));
      }
    },

    /** Charges the saved means of payment for an automatic top-up. */
    async chargeCheckout({ checkoutId }: { checkoutId: string }): Promise<CheckoutState> {
      using _heartbeat = keepAlive();
      const checkout = await find(checkoutId);
      if (checkout.endedAt !== null) return stateOf(checkout);
      const provider = requireProvider();
      const customerId = await customerOf(checkout.spaceId, provider);
      const { spaceId, amountMinor, currency } = checkout;
      const charge = await permanentIsFinal(() =>
        provider.charge({ checkoutId, spaceId, customerId, amountMinor, currency }),
      );
      await transaction(database, async (tx) => {
        if (charge.status === 'refused') await refuseAutoTopUp(tx, checkout);
        else await creditCheckout(tx, checkoutId, { sessionId: null, paymentId: charge.paymentId });
      });
      return stateOf(await find(checkoutId));
    },

    /** Ends the operation with the outcome of its checkout. A checkout that has not ended fails. */
    async endCheckoutOperation(input: { operationId: string; checkoutId: string }): Promise<void> {
      const checkout = await find(input.checkoutId);
      await transaction(database, async (tx) => {
        if (checkout.kind === 'autoTopUp') await refuseAutoTopUp(tx, checkout);
        else await markCheckout(tx, checkout.id, 'failed');
      });
      const end = endOf(await find(input.checkoutId));
      await transaction(database, (tx) => operationModels(tx).Operation.end(input.operationId, end, tx));
    },
  };

  async function find(checkoutId: string): Promise<Checkout> {
    const checkout = await findCheckout(database, 'id', checkoutId);
    if (checkout !== undefined) return checkout;
    throw ApplicationFailure.create({ type: 'NoSuchCheckout', message: checkoutId, nonRetryable: true });
  }

  function requireProvider(): PaymentProvider {
    if (deps.payments.provider !== undefined) return deps.payments.provider;
    throw ApplicationFailure.create({ type: 'NoPaymentProvider', nonRetryable: true });
  }

  async function customerOf(spaceId: string, provider: PaymentProvider): Promise<string> {
    const known = (await findSetup(database, spaceId))?.customerId;
    if (known) return known;
    const { id } = await permanentIsFinal(() =>
      provider.createCustomer({ spaceId, name: `Atrium space ${spaceId}`, email: undefined }),
    );
    await saveCustomer(database, spaceId, id);
    return (await findSetup(database, spaceId))?.customerId ?? id;
  }

  async function look(checkoutId: string, endAs: 'expired' | 'cancelled' = 'expired'): Promise<CheckoutState> {
    const checkout = await find(checkoutId);
    if (checkout.endedAt !== null || checkout.sessionId === null) return stateOf(checkout);
    const session = await permanentIsFinal(() => requireProvider().findCheckout(checkout.sessionId ?? ''));
    if (session?.paid && !isSameAmount(checkout, session)) await fileOtherAmount(database, checkout, session.sessionId);
    else {
      const status = session?.status === 'expired' ? endAs : await overdue(checkout, session);
      await transaction(database, async (tx) => {
        if (session?.paid) await creditCheckout(tx, checkoutId, session);
        else if (status !== undefined) await markCheckout(tx, checkoutId, status);
      });
    }
    return stateOf(await find(checkoutId));
  }

  /**
   * The end of a checkout for which the provider has no more news. Undefined while news may still come. Money that
   * arrives later is credited all the same.
   */
  async function overdue(
    { sessionId, expiresAt }: Checkout,
    session: ProviderCheckout | undefined,
  ): Promise<'expired' | 'failed' | undefined> {
    const overdueMs = Date.now() - expiresAt.getTime();
    if (sessionId === null || overdueMs < (session === undefined ? dayMs : longestPaymentMs)) return undefined;
    await noteFinding(
      database,
      sessionId,
      session === undefined ? 'CHECKOUT_UNKNOWN_TO_PROVIDER' : 'PAYMENT_NEVER_CAME',
    );
    return session === undefined ? 'expired' : 'failed';
  }
}

function stateOf({ status, endedAt }: Checkout): CheckoutState {
  return { status, over: endedAt !== null };
}

function endOf({ status, id }: Checkout): OperationEnd {
  switch (status) {
    case 'paid':
      return { status: 'succeeded', result: { checkoutId: id, status } };
    case 'cancelled':
      return { status };
    case 'expired':
      return { status: 'failed', code: 'CHECKOUT_EXPIRED', detail: 'The checkout was not paid in time.' };
    case 'mispaid':
      return {
        status: 'failed',
        code: 'PAID_OTHER_AMOUNT',
        detail:
          'The amount paid differs from the amount of the checkout. Nothing was credited; the operator was informed.',
      };
    default:
      return { status: 'failed', code: 'PAYMENT_FAILED', detail: 'The payment did not go through.' };
  }
}

/** Makes a permanent refusal final, since the provider would refuse again. */
async function permanentIsFinal<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PaymentProviderError) || !error.permanent) throw error;
    throw ApplicationFailure.create({ type: 'PaymentProviderRefused', message: error.message, nonRetryable: true });
  }
}
