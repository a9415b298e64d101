import type { Request, Response } from 'express';
import {
  type BrowserLink,
  createBrowserLink,
  listBrowserLinks,
  renewBrowserToken,
  revokeBrowserLink,
} from '../../../models/browsers/links.ts';
import { getBrowser } from '../../../models/browsers/session.ts';
import { answer } from '../../frame/answer.ts';
import { actorOf } from '../../frame/auth/actor.ts';
import { authorityOf, callerOf } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { makeOnce } from '../../frame/idempotency.ts';
import { publicLink } from '../../frame/links.ts';
import { bodyOf, pathOf } from '../../frame/request.ts';
import { createRouter } from '../../frame/router.ts';
import { time } from '../../frame/times.ts';
import { admitByLink, openBrowser, withBrowser } from '../look.ts';

const defaultTtlSeconds = 3_600;

/** Links with which scripts attach to a browser. `attach.ts` serves their address. */
export function browserLinkRoutes(deps: RouteDeps) {
  const { config, database } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/browsers/sessions/:sessionId/cdp';

  router.get(base, async (req, res) => {
    const { id } = await getBrowser(database, pathOf<'listBrowserLinks'>(req));
    const links = await listBrowserLinks(database, id);
    answer<'listBrowserLinks'>(res, 200, { data: links.map(present), nextCursor: null });
  });

  router.post(base, async (req, res) => {
    const ref = pathOf<'createBrowserLink'>(req);
    const { ttlSeconds = defaultTtlSeconds } = bodyOf<'createBrowserLink'>(req) ?? {};
    await openBrowser(deps, ref);
    const caller = callerOf(req);
    const { apiKeyId } = authorityOf(caller);
    const loginSessionId = caller.via === 'session' ? caller.sessionId : null;
    await makeOnce<'createBrowserLink', { id: string }>(
      deps,
      req,
      res,
      'browserLink',
      async (id) => {
        const fields = { ...ref, id, ttlSeconds, createdBy: caller.userId, apiKeyId, loginSessionId };
        await createBrowserLink(database, fields, actorOf(req));
        return { id };
      },
      {
        // No token is stored, so a repeated request gets a new one.
        show: async ({ id }) => {
          const { link, token } = await renewBrowserToken(database, id);
          return { ...present(link), url: socketUrl(token) };
        },
      },
    );
  });

  router.delete(`${base}/:linkId`, async (req, res) => {
    await revokeBrowserLink(database, pathOf<'deleteBrowserLink'>(req), actorOf(req));
    res.status(204).end();
  });

  router.get('/browsers/cdp/:token/json/version', describe);
  router.get('/browsers/cdp/:token/json/version/', describe);

  async function describe(req: Request, res: Response): Promise<void> {
    const { token } = pathOf<'describeBrowserLink'>(req);
    const { spaceId, sessionId } = await admitByLink(deps, token);
    const version = await withBrowser(deps, { spaceId, sessionId }, 'looks', (browser) => browser.version());
    answer<'describeBrowserLink'>(res, 200, { ...version, webSocketDebuggerUrl: socketUrl(token) });
  }

  function socketUrl(token: string): string {
    return publicLink(config, `browsers/cdp/${token}`).replace(/^http/, 'ws');
  }

  return router;
}

function present({ id, sessionId, createdBy, createdAt, expiresAt }: BrowserLink) {
  return { id, sessionId, createdBy, createdAt: time(createdAt), expiresAt: time(expiresAt) };
}
