import { newId } from '../../base/ids.ts';
import { lookAtApp } from '../../models/apps/lookAtApp.ts';
import { getPreview, listPreviews, noteServing, openPreview, type Preview } from '../../models/apps/previews.ts';
import { linkUrl, requireDomain } from '../computers/ports/routes.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeApp } from './authorizeApp.ts';
import { whenServing } from './whenServing.ts';

const defaultTtlSeconds = 3_600;

/** Links to the web components of apps. */
export function previewRoutes(deps: RouteDeps) {
  const { config, database, launcher, portLinks } = deps;
  const router = createRouter();
  const base = '/api/apps/:driveItemId/preview';

  router.post(base, async (req, res) => {
    const { app, placed } = await authorizeApp(deps, req, pathOf<'createPreview'>(req).driveItemId);
    const { component, ttlSeconds = defaultTtlSeconds } = bodyOf<'createPreview'>(req) ?? {};
    const caller = callerOf(req);
    requireScope(caller, 'computers:write', ', which a link to a port needs');
    requireDomain(deps);
    const gone = goneOf(res);
    const now = await lookAtApp(deps, app, placed.item, gone);
    const request = { app: now, component, ttlSeconds, actor: actorOf(req), ...authorityOf(caller) };
    await makeOnce<'createPreview', { id: string }>(
      deps,
      req,
      res,
      'portLink',
      async (linkId) => {
        const preview = await openPreview(deps, { ...request, linkId, runId: newId('run') });
        const { link, run } = preview;
        void launcher.startRun(run);
        try {
          await whenServing(deps, run, link.port, gone);
          await noteServing(database, preview, ttlSeconds);
        } catch (error) {
          // The caller did not get the link, so revoke it. Its run ends, unless other links to it hold.
          await portLinks.revoke(link, actorOf(req)).catch(() => undefined);
          void launcher.startRun(run);
          throw error;
        }
        return { id: linkId };
      },
      {
        // The link's token is stored only as a hash, so the link is made again.
        show: async ({ id }) => {
          const preview = await getPreview(database, app, id);
          return { ...present(preview), url: await linkUrl(deps, preview.link, caller) };
        },
      },
    );
  });

  router.get(base, async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'listPreviews'>(req).driveItemId);
    const data = (await listPreviews(database, app)).map(present);
    answer<'listPreviews'>(res, 200, { data, nextCursor: null });
  });

  router.delete(`${base}/:linkId`, async (req, res) => {
    const { driveItemId, linkId } = pathOf<'deletePreview'>(req);
    const { app } = await authorizeApp(deps, req, driveItemId);
    const { link, run } = await getPreview(database, app, linkId);
    await portLinks.revoke(link, actorOf(req));
    void launcher.startRun(run);
    res.status(204).end();
  });

  function present({ link, run }: Preview) {
    const { id, computerId, port, label, createdBy, createdAt, expiresAt } = link;
    const { component, id: runId } = run;
    const origin = config.ports.originOf(label);
    const times = { createdAt: time(createdAt), expiresAt: time(expiresAt) };
    return { id, component, runId, computerId, port, origin, createdBy, ...times };
  }

  return router;
}
