import type { RequestHandler } from 'express';
import { keepEvent } from '../../models/billing/paymentEvents.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { createRouter } from '../frame/router.ts';

/**
 * Endpoint 26 and its alias: verified over the raw bytes, stored, acknowledged. Its workflow applies it, which the
 * sweeper starts if this process cannot.
 */
export function paymentWebhookRoutes(deps: RouteDeps) {
  const { database, payments, launcher, limits } = deps;
  const router = createRouter();

  const receive: RequestHandler = async (req, res) => {
    const event = await payments
      .verify(req.rawBody ?? Buffer.alloc(0), req.get('stripe-signature'))
      .catch(async (error: unknown) => {
        // Forged ones count against their address; the provider's own are not limited.
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
