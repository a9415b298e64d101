import type { Request, RequestHandler, Response } from 'express';
import { type App, getAppOf } from '../../models/apps/app.ts';
import { type DeliveryAuth, keepDelivery } from '../../models/apps/deliveries.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import type { WebhookComponent } from '../../models/apps/manifest.ts';
import type { Actor } from '../../models/audit.ts';
import { openLiving } from '../../models/drive/changes.ts';
import { asNotFound, DomainError, type DomainErrorKind, notFound } from '../../models/errors.ts';
import { type Authority, insufficientScope, may } from '../../models/identity/authority.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { readRawBody } from '../frame/rawBody.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { requireStillAllowed } from '../frame/stillAllowed.ts';
import { optionalTime } from '../frame/times.ts';
import { verifyDelivery } from '../frame/verifyDelivery.ts';
import { authorizeApp, requireScopesOfMaker } from './authorizeApp.ts';
import { shownHeaders } from './shownHeaders.ts';

const maxBodyBytes = 1_048_576;
/** What keeps a manifest from being read just now. */
const passing: readonly DomainErrorKind[] = ['unavailable', 'upstream', 'upstreamTimeout', 'conflict', 'timeout'];

/** Who has sent a delivery, and whose rights its run has. */
interface Sender {
  auth: DeliveryAuth;
  authority: Authority & { userId: string };
  actor: Actor | null;
  deliveryId: string | undefined;
}

/** Endpoint 25: deliveries to the webhooks of apps, and what their senders sign with. */
export function webhookRoutes(deps: RouteDeps) {
  const { appSecrets, config, database, launcher, limits } = deps;
  const router = createRouter();

  const receive: RequestHandler = async (req, res, next) => {
    // Another area's paths look the same to the router.
    if (req.operation?.path !== path) return next();
    const { spaceId, appId: itemId } = pathOf<'deliverToApp'>(req);
    const app = await openApp(req, res, spaceId, itemId);
    const component = webhookOf(app);
    const isOpen = component.auth === 'none';
    if (isOpen || req.caller !== undefined) await limits.delivery(app.id, res);
    const body = await readRawBody(req, res, maxBodyBytes);
    const sender = await senderOf(req, res, app, { isOpen, body });
    if (sender.auth === 'signature') await limits.delivery(app.id, res);
    const delivery = {
      ...{ app, component, body, method: req.method, query: queryOf(req), headers: shownHeaders(req.rawHeaders) },
      ...{ auth: sender.auth, deliveryId: sender.deliveryId ?? null },
      ...{ authority: sender.authority, actor: sender.actor },
    };
    const { runId, isNew } = await keepDelivery(database, delivery, config.apps);
    void launcher.startRun({ id: runId, spaceId });
    const message = isNew ? 'The delivery is kept, and runs.' : 'This delivery was kept before; this is its run.';
    answer<'deliverToApp'>(res, 200, { ok: true, runId, component: component.name, message });
  };
  for (const method of ['post', 'put', 'patch', 'delete', 'get'] as const) {
    router[method]('/api/webhooks/:spaceId/:appId', receive);
  }

  router.post('/api/apps/:driveItemId/webhook/secret', async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'renewAppSecret'>(req).driveItemId);
    // Whoever has it can have the webhooks run.
    requireScopesOfMaker(req, app);
    const { secret, previousUntil } = await appSecrets.renew(app, actorOf(req));
    const url = new URL(`/api/webhooks/${app.spaceId}/${app.itemId}`, config.http.publicUrl).href;
    answer<'renewAppSecret'>(res, 201, { secret, url, previousUntil: optionalTime(previousUntil) });
  });

  /**
   * The app, as its manifest says now; where that is wrong, or cannot be read just now, as it was last. For a caller
   * who is not an editor of its space, it is not there, or not theirs to run.
   */
  async function openApp(req: Request, res: Response, spaceId: string, itemId: string): Promise<App> {
    const app = await getAppOf(database, itemId);
    if (app.spaceId !== spaceId) throw notFound('app');
    const { item } = await openLiving(database, spaceId, itemId).catch(asNoApp);
    if (req.caller !== undefined) await requireEditor(req, spaceId);
    try {
      return await lookAtApp(deps, app, item, goneOf(res));
    } catch (error) {
      if (!(error instanceof DomainError) || !passing.includes(error.kind)) throw error;
      return app;
    }
  }

  async function requireEditor(req: Request, spaceId: string): Promise<void> {
    await authorizeSpace(deps, callerOf(req), spaceId, 'editor').catch(asNoApp);
  }

  async function senderOf(
    req: Request,
    res: Response,
    app: App,
    { isOpen, body }: { isOpen: boolean; body: Buffer },
  ): Promise<Sender> {
    const ofMaker = { authority: { ...app.authority, userId: app.createdBy }, actor: null };
    const deliveryId = req.get('webhook-id') ?? req.get('x-github-delivery');
    if (req.caller !== undefined) {
      // The body may have come slowly.
      await requireStillAllowed(deps, req);
      await requireEditor(req, app.spaceId);
      const authority = { ...authorityOf(req.caller), userId: req.caller.userId };
      const { secrets } = webhookOf(app);
      if (secrets.length > 0 && !may(authority, 'secrets:read')) {
        throw insufficientScope('secrets:read', ', and this webhook is given secrets');
      }
      return { auth: 'bearer', authority, actor: actorOf(req), deliveryId };
    }
    if (isOpen) return { auth: 'none', ...ofMaker, deliveryId };
    const signed = await verifyDelivery(deps, req, res, { body, secrets: await appSecrets.of(app) });
    return { auth: 'signature', ...ofMaker, deliveryId: signed };
  }

  return router;
}

const path = '/api/webhooks/{spaceId}/{appId}';

/** That there is a space or an item of another tenant’s is not to be seen. */
function asNoApp(error: unknown): never {
  throw asNotFound(error, 'app');
}

function webhookOf({ manifest: { components } }: App): WebhookComponent {
  const webhooks = components.filter((component) => component.kind === 'webhook');
  const found = webhooks.find(({ isDefault }) => isDefault);
  if (found !== undefined) return found;
  const detail =
    webhooks.length === 0
      ? 'The app has no webhook component.'
      : 'None of the webhook components of the app is the default.';
  throw new DomainError('conflict', 'APP_NO_WEBHOOK', detail);
}

function queryOf({ originalUrl }: Request): string {
  const at = originalUrl.indexOf('?');
  return at === -1 ? '' : originalUrl.slice(at + 1);
}
