import type { Request, RequestHandler } from 'express';
import { notFound } from '../../base/errors.ts';
import { sessionEvent } from '../../integrations/billing/development.ts';
import { signWebhook } from '../../integrations/billing/webhookSignature.ts';
import { findCheckout } from '../../models/billing/checkouts.ts';
import { createDevelopmentPayments, type DevelopmentPayment } from '../../models/billing/developmentPayments.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { sendPage } from '../frame/pages/page.ts';
import { pathOf, queryOf } from '../frame/request.ts';
import { returnUrlOf } from '../frame/returnUrls.ts';
import { createRouter } from '../frame/router.ts';
import { checkoutPage, developmentPage, leftCheckoutPage } from './pages.ts';
import { presentCheckoutResult } from './presentBilling.ts';

/** The outcome of each choice on a development payment, with its notification. */
const outcomes = {
  pay: { status: 'complete', paymentStatus: 'paid', event: 'checkout.session.completed', back: 'successUrl' },
  fail: {
    status: 'complete',
    paymentStatus: 'unpaid',
    event: 'checkout.session.async_payment_failed',
    back: 'successUrl',
  },
  cancel: { status: 'expired', paymentStatus: 'unpaid', event: 'checkout.session.expired', back: 'cancelUrl' },
} as const;

const deliveryTimeoutMs = 5_000;

/**
 * The pages that a buyer sees: after the payment page, and the development provider's own. They take no credential,
 * since a browser returns without one.
 */
export function billingPageRoutes(deps: RouteDeps) {
  const { config, database } = deps;
  const payments = createDevelopmentPayments(database);
  const router = createRouter();

  // Both only read. Opening "success" without having paid shows that nothing is paid.
  const showResult =
    (hasLeft: boolean): RequestHandler =>
    async (req, res) => {
      const { session_id: name } = queryOf<'checkoutSuccess'>(req);
      const checkout =
        name === undefined
          ? undefined
          : ((await findCheckout(database, 'session_id', name)) ?? (await findCheckout(database, 'id', name)));
      const result = presentCheckoutResult(checkout, config);
      res.vary('accept');
      if (req.accepts(['html', 'json']) === 'json') {
        answer<'checkoutSuccess' | 'checkoutCancel'>(res, 200, result);
        return;
      }
      const back = returnUrlOf(checkout?.returnUrl, config);
      const hasLeftOpen = hasLeft && result.status === 'open';
      sendPage(res, hasLeftOpen ? leftCheckoutPage(result, checkout?.url ?? null, back) : checkoutPage(result, back));
    };
  router.get('/api/billing/checkout-success', showResult(false));
  router.get('/api/billing/checkout-cancel', showResult(true));

  router.get('/api/billing/development/:sessionId', async (req, res) => {
    const { sessionId, amountMinor, currency, status } = await find(pathOf<'developmentPayment'>(req).sessionId);
    const amount = amountMinor / config.billing.minorPerUnit;
    sendPage(res, developmentPage({ sessionId, amount, currency, isOpen: status === 'open' }));
  });

  router.post('/api/billing/development/:sessionId/:choice', async (req, res) => {
    const { sessionId, choice } = pathOf<'chooseDevelopmentPayment'>(req);
    const payment = await find(sessionId);
    const { back, event, ...end } = outcomes[choice];
    if (await payments.finish(sessionId, end)) await deliver(req, sessionEvent({ ...payment, ...end }, event));
    const { pathname, search } = new URL(payment[back].replace('{CHECKOUT_SESSION_ID}', sessionId));
    // The redirect is relative, so that it uses the host name of the request.
    res.redirect(303, pathname + search);
  });

  async function find(sessionId: string): Promise<DevelopmentPayment> {
    const payment = config.billing.mode === 'development' ? await payments.find('session_id', sessionId) : undefined;
    if (payment === undefined) throw notFound('payment');
    return payment;
  }

  /**
   * Sends the notification as a provider does: by HTTP, to this server's own endpoint. If it is lost, the purchase's
   * workflow finds the payment by itself.
   */
  async function deliver(req: Request, payload: string): Promise<void> {
    const { localAddress = '127.0.0.1', localPort } = req.socket;
    const host = localAddress.includes(':') ? `[${localAddress}]` : localAddress;
    const signature = await signWebhook(payload, await payments.webhookSecret());
    try {
      await fetch(`http://${host}:${localPort}/api/webhooks/billing`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'stripe-signature': signature },
        body: payload,
        signal: AbortSignal.timeout(deliveryTimeoutMs),
      });
    } catch (error) {
      deps.logger.warn({ err: error }, 'The development notification could not be delivered.');
    }
  }

  return router;
}
