import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import {
  type Controller,
  controllerOf,
  isController,
  releaseControl,
  takeControl,
} from '../../models/desktops/control.ts';
import {
  createDesktopLink,
  type DesktopLink,
  defaultLinkSeconds,
  desktopLinks,
  getDesktopLink,
} from '../../models/desktops/links.ts';
import { linkEnded, linkHolds, revokeLink } from '../../models/links/links.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { desktopChanges, openDesktop } from './look.ts';
import { viewAddress } from './presentDesktop.ts';

/** Links with which people look at a desktop, and the control over who may type. `view/` serves their address. */
export function desktopLinkRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/desktop/sessions/:sessionId';

  router.post(`${base}/link`, async (req, res) => {
    const ref = pathOf<'createDesktopLink'>(req);
    const { control = false, ttlSeconds = defaultLinkSeconds } = bodyOf<'createDesktopLink'>(req) ?? {};
    await openDesktop(deps, ref);
    if (!deps.config.ports.isReachable) throw noDomain();
    const caller = callerOf(req);
    const { apiKeyId } = authorityOf(caller);
    await makeOnce<'createDesktopLink', { id: string }>(
      deps,
      req,
      res,
      'desktopLink',
      async (id) => {
        const fields = { ...ref, id, control, ttlSeconds, createdBy: caller.userId, apiKeyId };
        await createDesktopLink(database, fields, actorOf(req));
        return { id };
      },
      {
        // No token is stored, so a repeated request gets a new one.
        show: async ({ id }) => present(await getDesktopLink(database, { ...ref, linkId: id }), req),
      },
    );
  });

  router.delete(`${base}/link/:linkId`, async (req, res) => {
    const link = await getDesktopLink(database, pathOf<'deleteDesktopLink'>(req));
    await revokeLink(database, desktopLinks, { ...link, openedId: link.sessionId }, actorOf(req));
    desktopChanges.emit(link.sessionId);
    res.status(204).end();
  });

  router.post(`${base}/control`, async (req, res) => {
    const ref = pathOf<'controlDesktop'>(req);
    await openDesktop(deps, ref);
    const me: Controller = { kind: 'user', userId: callerOf(req).userId };
    const { action } = bodyOf<'controlDesktop'>(req);
    const isChanged =
      action === 'take'
        ? await takeControl(database, ref.sessionId, me, { isTakeover: true })
        : await releaseControl(database, ref.sessionId, me);
    if (isChanged) desktopChanges.emit(ref.sessionId);
    const now = await controllerOf(database, ref.sessionId);
    answer<'controlDesktop'>(res, 200, { controller: nameOf(now, me) });
  });

  async function present(link: DesktopLink, req: Request): Promise<AnswerOf<'createDesktopLink'>> {
    if (!linkHolds(link)) throw linkEnded(desktopLinks);
    const { id, sessionId, control, createdBy, createdAt } = link;
    const { url, expiresAt } = await viewAddress(deps, link, callerOf(req));
    return { id, sessionId, control, url, createdBy, createdAt: time(createdAt), expiresAt: time(expiresAt) };
  }

  return router;
}

function nameOf(controller: Controller | undefined, me: Controller): AnswerOf<'controlDesktop'>['controller'] {
  if (controller === undefined) return 'none';
  if (isController(controller, me)) return 'you';
  return controller.kind === 'turn' ? 'agent' : controller.kind;
}

function noDomain(): DomainError {
  const detail =
    'Pages of desktops need a domain. The operator must set ATRIUM_PORTS_DOMAIN to a domain whose subdomains all lead to this server.';
  return new DomainError('unprocessable', 'PORTS_DOMAIN_MISSING', detail);
}
