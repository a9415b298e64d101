import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import { getComputer } from '../../models/computers/computer.ts';
import {
  type DesktopRef,
  type DesktopSession,
  endCodeOf,
  getDesktop,
  listDesktops,
} from '../../models/desktops/session.ts';
import { createDesktop, defaultResolution, deleteDesktop, resolutionOf } from '../../models/desktops/sessions.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { asItIs, desktopEnded, lookAtDesktop } from './look.ts';
import { presentDesktop, presentDesktops } from './presentDesktop.ts';

/** Desktop sessions as their computer has them. */
export function desktopRoutes(deps: RouteDeps) {
  const { database, launcher, liveComputers } = deps;
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
        // One of an earlier request may have run, and ended since.
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
      // One on a computer that stands still is ended when that goes on.
      await waitForRow(req, async () => {
        const { status, computerStatus } = await getDesktop(database, ref);
        return status === 'ended' || computerStatus === 'paused' ? true : undefined;
      });
    }
    res.status(204).end();
  });

  async function shown(req: Request, ref: DesktopRef) {
    return presentDesktop(deps, await lookAtDesktop(deps, ref), callerOf(req));
  }

  async function untilStarted(req: Request, ref: DesktopRef) {
    const look = async (): Promise<DesktopSession | undefined> => {
      const session = await getDesktop(database, ref);
      return session.status === 'starting' && endCodeOf(session) === undefined ? undefined : session;
    };
    return (await waitForRow(req, look)) ?? getDesktop(database, ref);
  }

  return router;
}

function notStarted(code: string): DomainError {
  if (code === 'DESKTOPS_UNAVAILABLE') return new DomainError('unprocessable', code, desktopEnded(code).message);
  return new DomainError('upstream', code, desktopEnded(code).message);
}
