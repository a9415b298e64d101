import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { type DesktopRef, endCodeOf, getDesktop, listDesktops } from '../../models/desktops/session.ts';
import {
  createDesktop,
  defaultResolution,
  deleteDesktop,
  noteSize,
  resolutionOf,
} from '../../models/desktops/sessions.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { Screenshots } from '../frame/screenshots.ts';
import { asItIs, desktopEnded, lookAtDesktop, withXServer } from './look.ts';
import { presentDesktop, presentDesktops } from './presentDesktop.ts';

/** Desktop sessions of a computer, their screens and their sizes. */
export function desktopRoutes(deps: RouteDeps) {
  const { database, launcher, liveComputers } = deps;
  const screenshots = new Screenshots();
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/desktop/sessions';

  router.get(base, async (req, res) => {
    const { spaceId, computerId } = pathOf<'listDesktopSessions'>(req);
    await getComputer(database, spaceId, computerId);
    const { data, nextCursor } = await listDesktops(database, computerId, pageOf(req));
    const now = await Promise.all(data.map((session) => asItIs(deps, session)));
    answer<'listDesktopSessions'>(res, 200, { data: await presentDesktops(deps, now, callerOf(req)), nextCursor });
  });

  router.post(base, async (req, res) => {
    const ref = pathOf<'createDesktopSession'>(req);
    const { resolution: wanted = defaultResolution } = bodyOf<'createDesktopSession'>(req) ?? {};
    const resolution = resolutionOf(wanted);
    await makeOnce<'createDesktopSession', { id: string }>(
      deps,
      req,
      res,
      'desktopSession',
      async (id) => {
        await liveComputers.awake(ref, actorOf(req));
        const isNew = await createDesktop(database, { ...ref, sessionId: id, ...resolution }, actorOf(req));
        void launcher.startDesktop({ id, spaceId: ref.spaceId });
        const session = await untilStarted(req, { ...ref, sessionId: id });
        const code = endCodeOf(session);
        // The session of an earlier request may have run, and have ended since.
        if (code !== undefined && isNew) throw notStarted(code);
        return { id };
      },
      { status: 200, show: async ({ id }) => shown(req, { ...ref, sessionId: id }) },
    );
  });

  router.get(`${base}/:sessionId`, async (req, res) => {
    answer<'getDesktopSession'>(res, 200, await shown(req, pathOf<'getDesktopSession'>(req)));
  });

  router.delete(`${base}/:sessionId`, async (req, res) => {
    const ref = pathOf<'deleteDesktopSession'>(req);
    const session = await deleteDesktop(database, ref, actorOf(req));
    if (session.recordingId !== null) void launcher.startRecording({ ...session, id: session.recordingId });
    if (session.status === 'ending') {
      void launcher.startDesktop(session);
      // A session on a paused computer ends when the computer continues.
      await waitForRow(
        req,
        () => getDesktop(database, ref),
        ({ status, computerStatus }) => status === 'ended' || computerStatus === 'paused',
      );
    }
    res.status(204).end();
  });

  router.post(`${base}/:sessionId/resize`, async (req, res) => {
    const ref = pathOf<'resizeDesktopSession'>(req);
    const resolution = resolutionOf(bodyOf<'resizeDesktopSession'>(req).resolution);
    await withXServer(deps, ref, async (server) => noteSize(database, ref.sessionId, await server.resize(resolution)));
    const session = await getDesktop(database, ref);
    answer<'resizeDesktopSession'>(res, 200, await presentDesktop(deps, session, callerOf(req)));
  });

  router.get(`${base}/:sessionId/screenshot`, async (req, res) => {
    const png = await withXServer(deps, pathOf<'getDesktopScreenshot'>(req), (server, session) =>
      screenshots.of(session, server),
    );
    res.set('cache-control', 'no-store').type('image/png').send(png);
  });

  async function shown(req: Request, ref: DesktopRef) {
    return presentDesktop(deps, await lookAtDesktop(deps, ref), callerOf(req));
  }

  function untilStarted(req: Request, ref: DesktopRef) {
    return waitForRow(
      req,
      () => getDesktop(database, ref),
      (session) => session.status !== 'starting' || endCodeOf(session) !== undefined,
    );
  }

  return router;
}

function notStarted(code: string): DomainError {
  const kind = code === 'DESKTOPS_UNAVAILABLE' ? 'unprocessable' : 'upstream';
  return new DomainError(kind, code, desktopEnded(code).message);
}
