import type { Request } from 'express';
import { asNotFound, notFound } from '../../base/errors.ts';
import { askToRun } from '../../models/apps/askToRun.ts';
import { type Delivery, deliveryGone, getDelivery, listDeliveries } from '../../models/apps/deliveries.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeApp } from './authorizeApp.ts';

/** Deliveries to the webhooks of apps. */
export function deliveryRoutes(deps: RouteDeps) {
  const { database, launcher } = deps;
  const router = createRouter();

  router.get('/api/apps/:driveItemId/deliveries', async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'listDeliveries'>(req).driveItemId);
    const { data, nextCursor } = await listDeliveries(database, app.id, pageOf(req));
    answer<'listDeliveries'>(res, 200, { data: data.map(presentDelivery), nextCursor });
  });

  router.post('/api/deliveries/:deliveryId/replay', async (req, res) => {
    const { delivery, app, placed } = await open(req, pathOf<'replayDelivery'>(req).deliveryId);
    if (!delivery.hasContent) throw deliveryGone();
    const now = await lookAtApp(deps, app, placed.item, goneOf(res));
    const request = { app: now, component: delivery.component, deliveryId: delivery.id, trigger: 'replay' } as const;
    await makeOnce<'replayDelivery'>(
      deps,
      req,
      res,
      'run',
      async (id) => {
        const by = { actor: actorOf(req), ...authorityOf(callerOf(req)) };
        const run = await askToRun(deps, { ...request, ...by, id });
        void launcher.startRun(run);
        const message = 'A new run was started for the delivery.';
        return { ok: true, runId: run.id, component: run.component, message };
      },
      { status: 200 },
    );
  });

  /** A delivery, for a caller whose role allows the operation. 404 for everyone else. */
  async function open(req: Request, id: string) {
    const delivery = await getDelivery(database, id);
    try {
      const { app, placed } = await authorizeApp(deps, req, delivery.itemId);
      // A delivery to a removed app does not belong to a later app of the same item.
      if (app.id !== delivery.appId) throw notFound('delivery');
      return { delivery, app, placed };
    } catch (error) {
      throw asNotFound(error, 'delivery');
    }
  }

  return router;
}

function presentDelivery(delivery: Delivery): AnswerOf<'listDeliveries'>['data'][number] {
  const { id, itemId: appId, spaceId, component, auth, deliveryId, runId, runStatus, method, bodyBytes } = delivery;
  const { hasContent: isKept, createdAt } = delivery;
  const shown = { id, appId, spaceId, component, auth, deliveryId, runId, status: runStatus, method, bodyBytes };
  return { ...shown, isKept, createdAt: time(createdAt) };
}
