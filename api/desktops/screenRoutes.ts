import { getDesktop } from '../../models/desktops/session.ts';
import { noteSize, resolutionOf } from '../../models/desktops/sessions.ts';
import { answer } from '../frame/answer.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { Screenshots } from '../frame/screenshots.ts';
import { withXServer } from './look.ts';
import { presentDesktop } from './presentDesktop.ts';

/** What a desktop shows, and how large it is. */
export function desktopScreenRoutes(deps: RouteDeps) {
  const { database } = deps;
  const screenshots = new Screenshots();
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/desktop/sessions/:sessionId';

  router.post(`${base}/resize`, async (req, res) => {
    const ref = pathOf<'resizeDesktopSession'>(req);
    const resolution = resolutionOf(bodyOf<'resizeDesktopSession'>(req).resolution);
    await withXServer(deps, ref, async (server) => noteSize(database, ref.sessionId, await server.resize(resolution)));
    answer<'resizeDesktopSession'>(
      res,
      200,
      await presentDesktop(deps, await getDesktop(database, ref), callerOf(req)),
    );
  });

  router.get(`${base}/screenshot`, async (req, res) => {
    const png = await withXServer(deps, pathOf<'getDesktopScreenshot'>(req), (server, session) =>
      screenshots.of(session, server),
    );
    res.set('cache-control', 'no-store').type('image/png').send(png);
  });

  return router;
}
