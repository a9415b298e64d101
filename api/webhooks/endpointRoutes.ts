import { checkWebhookEndpoint } from '../../integrations/webhooks/checkEndpoint.ts';
import { getWebhookDelivery } from '../../models/webhooks/deliveries.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { optionalTime } from '../frame/times.ts';
import { presentEndpoint, presentWebhookDelivery } from './present.ts';

/** Endpoints that a space wants notified of its events. */
export function webhookEndpointRoutes(deps: RouteDeps) {
  const { database, egressGuard, egressRules, webhookEndpoints } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/webhook-endpoints', async (req, res) => {
    const { spaceId } = pathOf<'listWebhookEndpoints'>(req);
    const { data, nextCursor } = await webhookEndpoints.list(spaceId, pageOf(req));
    answer<'listWebhookEndpoints'>(res, 200, { data: data.map(presentEndpoint), nextCursor });
  });

  router.post('/api/spaces/:spaceId/webhook-endpoints', async (req, res) => {
    const { spaceId } = pathOf<'createWebhookEndpoint'>(req);
    const { url, events = [], enabled = true } = bodyOf<'createWebhookEndpoint'>(req);
    await checkUrl(spaceId, url);
    const make = async (id: string) => {
      await webhookEndpoints.add({ spaceId, id }, { url, events, enabled }, actorOf(req));
      return { id };
    };
    await makeOnce<'createWebhookEndpoint', { id: string }>(deps, req, res, 'webhookEndpoint', make, {
      // The secret is stored only sealed, so it is opened for the answer.
      async show({ id }) {
        const endpoint = presentEndpoint(await webhookEndpoints.get({ spaceId, id }));
        return { ...endpoint, secret: (await webhookEndpoints.shown({ spaceId, id }, id)).secret };
      },
    });
  });

  router.get('/api/spaces/:spaceId/webhook-endpoints/:endpointId', async (req, res) => {
    const { spaceId, endpointId: id } = pathOf<'getWebhookEndpoint'>(req);
    answer<'getWebhookEndpoint'>(res, 200, presentEndpoint(await webhookEndpoints.get({ spaceId, id })));
  });

  router.patch('/api/spaces/:spaceId/webhook-endpoints/:endpointId', async (req, res) => {
    const { spaceId, endpointId: id } = pathOf<'updateWebhookEndpoint'>(req);
    const change = bodyOf<'updateWebhookEndpoint'>(req);
    await webhookEndpoints.get({ spaceId, id });
    if (change.url !== undefined) await checkUrl(spaceId, change.url);
    const changed = await webhookEndpoints.change({ spaceId, id }, change, actorOf(req));
    answer<'updateWebhookEndpoint'>(res, 200, presentEndpoint(changed));
  });

  router.delete('/api/spaces/:spaceId/webhook-endpoints/:endpointId', async (req, res) => {
    const { spaceId, endpointId: id } = pathOf<'deleteWebhookEndpoint'>(req);
    await webhookEndpoints.remove({ spaceId, id }, actorOf(req));
    res.status(204).end();
  });

  router.post('/api/spaces/:spaceId/webhook-endpoints/:endpointId/ping', async (req, res) => {
    const { spaceId, endpointId } = pathOf<'pingWebhookEndpoint'>(req);
    await makeOnce<'pingWebhookEndpoint'>(deps, req, res, 'webhookDelivery', async (id) => {
      await webhookEndpoints.ping({ spaceId, id: endpointId }, id);
      return presentWebhookDelivery(await getWebhookDelivery(database, { spaceId, endpointId, id }));
    });
  });

  router.post('/api/spaces/:spaceId/webhook-endpoints/:endpointId/secret', async (req, res) => {
    const { spaceId, endpointId: id } = pathOf<'renewWebhookEndpointSecret'>(req);
    const { revokePrevious = false } = bodyOf<'renewWebhookEndpointSecret'>(req) ?? {};
    const make = async (secretId: string) => {
      await webhookEndpoints.renew({ spaceId, id }, { id: secretId, revokePrevious }, actorOf(req));
      return { id: secretId };
    };
    await makeOnce<'renewWebhookEndpointSecret', { id: string }>(deps, req, res, 'webhookSecret', make, {
      async show({ id: secretId }) {
        const { secret, previousUntil } = await webhookEndpoints.shown({ spaceId, id }, secretId);
        return { secret, previousUntil: optionalTime(previousUntil) };
      },
    });
  });

  async function checkUrl(spaceId: string, url: string): Promise<void> {
    await checkWebhookEndpoint(egressGuard, await egressRules.owner(spaceId, 'webhook'), url);
  }

  return router;
}
