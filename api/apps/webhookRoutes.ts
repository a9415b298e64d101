import type { Request, RequestHandler } from 'express';
import { asNotFound, DomainError, type DomainErrorKind, notFound } from '../../base/errors.ts';
import { type App, getAppOf } from '../../models/apps/app.ts';
import { type DeliveryAuth, keepDelivery } from '../../models/apps/deliveries.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import type { WebhookComponent } from '../../models/apps/manifest.ts';
import { requireScopes } from '../../models/apps/requireScopes.ts';
import { requireVersionInUse, waitsBeside } from '../../models/apps/requireVersionInUse.ts';
import type { Actor } from '../../models/audit/audit.ts';
import { openLiving } from '../../models/drive/changes.ts';
import type { DriveItem } from '../../models/drive/driveItem.ts';
import type { Authority } from '../../models/identity/authority.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { readRawBody } from '../frame/rawBody.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { requireStillAllowed } from '../frame/stillAllowed.ts';
import { optionalTime } from '../frame/times.ts';
import { verifyDelivery } from '../frame/verifyDelivery.ts';
import { authorizeApp, requireScopesOfMaker } from './authorizeApp.ts';

const maxBodyBytes = 1_048_576;
/** Errors after which the manifest may be readable again soon. */
const passing: readonly DomainErrorKind[] = ['unavailable', 'upstream', 'upstreamTimeout', 'conflict', 'timeout'];

/** The sender of a delivery, and the rights of its run. */
interface Sender {
  auth: DeliveryAuth;
  authority: Authority & { userId: string };
  actor: Actor | null;
  deliveryId: string | null;
}

interface DeliveryPath {
  spaceId: string;
  appId: string;
  component?: string;
}

/** Deliveries to the webhooks of apps, and the secrets with which senders sign them. */
export function webhookRoutes(deps: RouteDeps) {
  const { appSecrets, config, database, launcher, limits } = deps;
  const router = createRouter();

  const receive: RequestHandler = async (req, res, next) => {
    // The paths of another area match this route too.
    if (!paths.includes(req.operation?.path ?? '')) return next();
    const { spaceId, appId: itemId, component: name } = pathOf<'deliverToApp'>(req) as DeliveryPath;
    const { known, item } = await openApp(req, spaceId, itemId);
    let reading: Promise<Buffer> | undefined;
    const body = () => {
      reading ??= readRawBody(req, res, maxBodyBytes);
      return reading;
    };
    const verify = (app: App) => verifyDelivery(deps, req, res, { body, secrets: () => appSecrets.of(app) });
    // Check the signature before reading the manifest, so that an address with too many bad ones causes no reads. The
    // present manifest may no longer need one, so a refusal is only thrown below.
    const mayNeedIt = req.caller === undefined && webhookIn(known, name)?.auth === 'signature';
    const early = mayNeedIt ? await verify(known).then(asSigned, asRefused) : undefined;
    const app = await look(known, item, goneOf(res));
    const component = webhookOf(app, name);
    const isNeeded = req.caller === undefined && component.auth === 'signature';
    if (isNeeded && early?.refusal !== undefined) throw early.refusal;
    const signedId = early?.signedId ?? (isNeeded ? await verify(app) : undefined);
    await limits.delivery(app.id, res);
    const from = { method: req.method, query: queryOf(req), headers: shownHeaders(req.rawHeaders) };
    const content = { ...from, body: await body() };
    const sender = await senderOf(req, app, component, signedId);
    const { runId, isNew } = await keepDelivery(deps, { app, component, ...content, ...sender }, config.apps);
    void launcher.startRun({ id: runId, spaceId });
    const kept = isNew
      ? 'The delivery was stored and started a run.'
      : 'This delivery was already received. This is its run.';
    const message = app.waitingId === null ? kept : `${kept} ${waitsBeside}`;
    answer<'deliverToApp'>(res, 200, { ok: true, runId, component: component.name, message });
  };
  for (const method of ['post', 'put', 'patch', 'delete', 'get'] as const) {
    router[method]('/api/webhooks/:spaceId/:appId', receive);
    router[method]('/api/webhooks/:spaceId/:appId/:component', receive);
  }

  router.post('/api/apps/:driveItemId/webhook/secret', async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'renewAppSecret'>(req).driveItemId);
    // Anyone who has the secret can make the webhooks run.
    await requireScopesOfMaker(deps, req, app);
    const { revokePrevious = false } = bodyOf<'renewAppSecret'>(req) ?? {};
    const url = new URL(`/api/webhooks/${app.spaceId}/${app.itemId}`, config.http.publicUrl).href;
    const make = async (id: string) => {
      await appSecrets.renew(app, { id, revokePrevious }, actorOf(req));
      return { id };
    };
    await makeOnce<'renewAppSecret', { id: string }>(deps, req, res, 'webhookSecret', make, {
      // The secret is stored only sealed.
      show: async ({ id }) => {
        const { secret, previousUntil } = await appSecrets.shown(app, id);
        return { secret, url, previousUntil: optionalTime(previousUntil) };
      },
    });
  });

  /** Throws 404 for a stranger, and refuses a member who is not an editor. */
  async function openApp(req: Request, spaceId: string, itemId: string) {
    const known = await getAppOf(database, itemId);
    if (known.spaceId !== spaceId) throw notFound('app');
    const { item } = await openLiving(database, spaceId, itemId).catch(asNoApp);
    if (req.caller !== undefined) await requireEditor(req, spaceId);
    return { known, item };
  }

  /** The app with its current manifest. If that is wrong or unreadable just now, the app as it was last. */
  async function look(app: App, item: DriveItem, gone: AbortSignal): Promise<App> {
    try {
      return await lookAtApp(deps, app, item, gone);
    } catch (error) {
      if (!(error instanceof DomainError) || !passing.includes(error.kind)) throw error;
      return app;
    }
  }

  async function requireEditor(req: Request, spaceId: string): Promise<void> {
    await authorizeSpace(deps, callerOf(req), spaceId, 'editor').catch(asNoApp);
  }

  /** `signedId` is the id of a signed delivery. */
  async function senderOf(
    req: Request,
    app: App,
    component: WebhookComponent,
    signedId: string | undefined,
  ): Promise<Sender> {
    const deliveryId = signedId ?? req.get('webhook-id') ?? req.get('x-github-delivery') ?? null;
    if (req.caller === undefined) {
      const authority = { ...app.authority, userId: app.runsAs };
      return { auth: signedId === undefined ? 'none' : 'signature', authority, actor: null, deliveryId };
    }
    // The body may have arrived slowly.
    await requireStillAllowed(deps, req);
    await requireEditor(req, app.spaceId);
    const authority = { ...authorityOf(req.caller), userId: req.caller.userId };
    await requireScopes(database, app, component, authority);
    return { auth: 'bearer', authority, actor: actorOf(req), deliveryId };
  }

  return router;
}

const paths = ['/api/webhooks/{spaceId}/{appId}', '/api/webhooks/{spaceId}/{appId}/{component}'];

interface Signature {
  /** The id of the delivery, if the signature is valid. */
  signedId?: string;
  /** The error, if it is not. */
  refusal?: DomainError;
}

function asSigned(signedId: string): Signature {
  return { signedId };
}

function asRefused(error: unknown): Signature {
  if (error instanceof DomainError && error.code === 'INVALID_SIGNATURE') return { refusal: error };
  throw error;
}

/** Hides whether another tenant's space or item exists. */
function asNoApp(error: unknown): never {
  throw asNotFound(error, 'app');
}

/** The webhook of this name, or the default one. */
function webhookIn({ manifest: { components } }: App, name: string | undefined): WebhookComponent | undefined {
  const webhooks = components.filter((component) => component.kind === 'webhook');
  return webhooks.find((component) => (name === undefined ? component.isDefault : component.name === name));
}

function webhookOf(app: App, name: string | undefined): WebhookComponent {
  requireVersionInUse(app);
  const found = webhookIn(app, name);
  if (found !== undefined) return found;
  const isAny = app.manifest.components.some(({ kind }) => kind === 'webhook');
  const detail = !isAny
    ? 'The app has no webhook component.'
    : name === undefined
      ? 'The app has no default webhook component. Add the name of a component to the address.'
      : 'The app has no webhook component of this name.';
  throw new DomainError('conflict', 'APP_NO_WEBHOOK', detail);
}

function queryOf({ originalUrl }: Request): string {
  const at = originalUrl.indexOf('?');
  return at === -1 ? '' : originalUrl.slice(at + 1);
}

/** Names of headers that prove or grant access: credentials, sessions, signatures. */
const secret =
  /authori[sz]ation|cookie|signature|token|secret|passw|credential|(^|-)(access|account|api|auth|functions?|host|master|private|shared|subscription)-?keys?(-|$)|(^|-)(auth|session)(-|$)/;

/** The headers that a run gets, by lower-case name, without secrets. Repeated headers are joined into one list. */
function shownHeaders(rawHeaders: readonly string[]): Record<string, string> {
  const shown = new Map<string, string>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at]?.toLowerCase(), rawHeaders[at + 1]];
    if (secret.test(name)) continue;
    const known = shown.get(name);
    shown.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return Object.fromEntries(shown);
}
