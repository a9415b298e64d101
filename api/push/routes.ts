import { checkPushEndpoint } from '../../integrations/push/pushFetch.ts';
import type { PushDevice } from '../../models/push/subscriptions.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pageOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

/** The caller's devices that receive pushes about turns. */
export function pushRoutes({ egressGuard, push: { keys, subscriptions } }: RouteDeps) {
  const router = createRouter();

  router.get('/api/push/key', async (_req, res) => {
    answer<'getPushKey'>(res, 200, { publicKey: (await keys()).publicKey });
  });

  router.get('/api/push/subscriptions', async (req, res) => {
    const { data, nextCursor } = await subscriptions.list(callerOf(req).userId, pageOf(req));
    answer<'listPushSubscriptions'>(res, 200, { data: data.map(presentPushDevice), nextCursor });
  });

  router.post('/api/push/subscriptions', async (req, res) => {
    const caller = callerOf(req);
    const { endpoint, keys: deviceKeys, deviceName } = bodyOf<'addPushSubscription'>(req);
    const owner = { userId: caller.userId, sessionId: caller.via === 'session' ? caller.sessionId : null };
    await checkPushEndpoint(egressGuard, endpoint);
    const device = await subscriptions.add(owner, { endpoint, keys: deviceKeys }, deviceName ?? null);
    answer<'addPushSubscription'>(res, 201, presentPushDevice(device));
  });

  router.delete('/api/push/subscriptions', async (req, res) => {
    await subscriptions.remove(callerOf(req).userId, queryOf<'removePushSubscription'>(req).subscriptionId);
    res.status(204).end();
  });

  return router;
}

function presentPushDevice(device: PushDevice) {
  const { id, deviceName, service, createdAt, lastPushedAt } = device;
  return {
    id,
    deviceName,
    service,
    createdAt: createdAt.toISOString(),
    lastPushedAt: lastPushedAt?.toISOString() ?? null,
  };
}
