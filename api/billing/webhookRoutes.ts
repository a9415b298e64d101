import type { RequestHandler } from 'express';
import { keepEvent } from '../../models/billing/paymentEvents.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';

/**
 * Verifies a notification over its raw bytes, stores it and acknowledges it. A workflow applies it. If this process
 * cannot start that workflow, the sweeper does.
 */
export function paymentWebhookRoutes(deps: RouteDeps) {
  const { database, payments, launcher, limits } = deps;
  const router = createRouter();

  const receive: RequestHandler = async (req, res) => {
    const event = await payments
      .verify(req.rawBody ?? Buffer.alloc(0), req.get('stripe-signature'))
      .catch(async (error: unknown) => {
        // Forged notifications count against the caller's address. The provider's own are not limited.
        await limits.failedAuthentication(req, res);
        throw error;
      });
    const isNew = await keepEvent(database, { ...event, provider: payments.provider?.name ?? 'none' });
    answer<'receivePaymentEvent' | 'receiveStripeEvent'>(res, 200, { received: true });
    if (!isNew) return;
    void launcher.startSettlement(event.id);
  };
  router.post(['/api/webhooks/billing', '/api/webhooks/stripe'], receive);
  return router;
}
