import { getWebhookDelivery, listWebhookDeliveries, replayWebhookDelivery } from '../../models/webhooks/deliveries.ts';
import { answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentWebhookDelivery } from './present.ts';

/** Deliveries to a space's endpoints, and their outcomes. */
export function webhookDeliveryRoutes(deps: RouteDeps) {
  const { database, webhookEndpoints } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/webhook-endpoints/:endpointId/deliveries', async (req, res) => {
    const { spaceId, endpointId } = pathOf<'listWebhookDeliveries'>(req);
    await webhookEndpoints.get({ spaceId, id: endpointId });
    const { data, nextCursor } = await listWebhookDeliveries(database, endpointId, pageOf(req));
    answer<'listWebhookDeliveries'>(res, 200, { data: data.map(presentWebhookDelivery), nextCursor });
  });

  router.get('/api/spaces/:spaceId/webhook-endpoints/:endpointId/deliveries/:deliveryId', async (req, res) => {
    const { spaceId, endpointId, deliveryId: id } = pathOf<'getWebhookDelivery'>(req);
    await webhookEndpoints.get({ spaceId, id: endpointId });
    const delivery = await getWebhookDelivery(database, { spaceId, endpointId, id });
    answer<'getWebhookDelivery'>(res, 200, presentWebhookDelivery(delivery));
  });

  router.post('/api/spaces/:spaceId/webhook-endpoints/:endpointId/deliveries/:deliveryId/replay', async (req, res) => {
    const { spaceId, endpointId, deliveryId: id } = pathOf<'replayWebhookDelivery'>(req);
    await webhookEndpoints.get({ spaceId, id: endpointId });
    await makeOnce<'replayWebhookDelivery'>(
      deps,
      req,
      res,
      'webhookDelivery',
      async (replayId) =>
        presentWebhookDelivery(await replayWebhookDelivery(database, { spaceId, endpointId, id }, replayId)),
      { status: 200 },
    );
  });

  return router;
}
