import type { Request, Response } from 'express';
import { DomainError } from '../../base/errors.ts';
import { getProfile } from '../../models/browsers/profile.ts';
import { computerOf } from '../../models/browsers/profiles.ts';
import {
  type BrowserSession,
  endCodeOf,
  getBrowser,
  hasEnded,
  listBrowsers,
  liveSessions,
} from '../../models/browsers/session.ts';
import { createBrowser, deleteBrowser, requireWebAddress } from '../../models/browsers/sessions.ts';
import { chosenComputer } from '../../models/computers/servingComputer.ts';
import { resolutionOf } from '../../models/desktops/sessions.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { asItIs, browserEnded, lookAtBrowser } from './look.ts';
import { presentBrowser } from './present.ts';

const usualResolution = '1280x800';

/** Browser sessions of a space, with or without a profile. */
export function browserSessionRoutes(deps: RouteDeps) {
  const { database, launcher, liveComputers } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/browsers';

  router.post(`${base}/profiles/:profileId/sessions`, async (req, res) => {
    const ref = pathOf<'createBrowserSession'>(req);
    const profile = await getProfile(database, ref);
    const { computerId, environmentId } = bodyOf<'createBrowserSession'>(req) ?? {};
    const isNamed = computerId !== undefined || environmentId !== undefined;
    const named = { spaceId: ref.spaceId, computerId, environmentId, actor: actorOf(req) };
    const chosen = isNamed ? (await chosenComputer(deps, named)).id : await computerOf(database, profile);
    await start(req, res, { ...ref, computerId: chosen });
  });

  router.post(`${base}/sessions`, async (req, res) => {
    const { spaceId } = pathOf<'createTemporaryBrowserSession'>(req);
    const { computerId, environmentId } = bodyOf<'createTemporaryBrowserSession'>(req) ?? {};
    const chosen = await chosenComputer(deps, { spaceId, computerId, environmentId, actor: actorOf(req) });
    await start(req, res, { spaceId, profileId: undefined, computerId: chosen.id });
  });

  router.get(`${base}/sessions`, async (req, res) => {
    const { spaceId } = pathOf<'listBrowserSessions'>(req);
    const { data, nextCursor } = await listBrowsers(database, spaceId, pageOf(req));
    const now = await Promise.all(data.map((session) => asItIs(deps, session)));
    answer<'listBrowserSessions'>(res, 200, { data: now.map(presentBrowser), nextCursor });
  });

  router.get(`${base}/sessions/:sessionId`, async (req, res) => {
    const session = await lookAtBrowser(deps, pathOf<'getBrowserSession'>(req));
    answer<'getBrowserSession'>(res, 200, presentBrowser(session));
  });

  router.delete(`${base}/sessions/:sessionId`, async (req, res) => {
    const ref = pathOf<'deleteBrowserSession'>(req);
    const session = await deleteBrowser(database, ref, actorOf(req));
    if (session.status !== 'ended') {
      void launcher.startBrowser(session);
      // A session on a paused computer ends when the computer continues.
      await waitForRow(
        req,
        () => getBrowser(database, ref),
        ({ status, computerStatus }) => status === 'ended' || computerStatus === 'paused',
      );
    }
    res.status(204).end();
  });

  /** Both ways to start a session have the same body and the same answer. */
  async function start(
    req: Request,
    res: Response,
    where: { spaceId: string; profileId: string | undefined; computerId: string },
  ): Promise<void> {
    const { resolution = usualResolution, url, desktopSessionId } = bodyOf<'createBrowserSession'>(req) ?? {};
    const size = resolutionOf(resolution);
    if (url !== undefined) requireWebAddress(url);
    await makeOnce<'createBrowserSession', { id: string }>(
      deps,
      req,
      res,
      'browserSession',
      async (id) => {
        await liveComputers.awake(where, actorOf(req));
        if (where.profileId !== undefined) await untilSaved(req, where.profileId);
        const fields = { ...where, ...size, sessionId: id, url, desktopSessionId };
        const isNew = await createBrowser(deps, fields, actorOf(req));
        void launcher.startBrowser({ id, spaceId: where.spaceId });
        const session = await untilStarted(req, { spaceId: where.spaceId, sessionId: id });
        const code = endCodeOf(session);
        // The session of an earlier request may have run, and have ended since.
        if (code !== undefined && isNew) throw notStarted(code);
        return { id };
      },
      { show: async ({ id }) => presentBrowser(await lookAtBrowser(deps, { spaceId: where.spaceId, sessionId: id })) },
    );
  }

  /** Waits for a session that is ending and has not saved the profile yet. */
  async function untilSaved(req: Request, profileId: string): Promise<void> {
    const ending = async () => (await liveSessions(database, [profileId])).find(hasEnded);
    const before = await ending();
    if (before === undefined || before.computerStatus === 'paused') return;
    await asItIs(deps, before);
    void launcher.startBrowser(before);
    await waitForRow(req, ending, (session) => session === undefined);
  }

  function untilStarted(req: Request, ref: { spaceId: string; sessionId: string }): Promise<BrowserSession> {
    return waitForRow(
      req,
      () => getBrowser(database, ref),
      (session) => session.status !== 'starting' || hasEnded(session),
    );
  }

  return router;
}

function notStarted(code: string): DomainError {
  const { message } = browserEnded(code);
  const kind = ['BROWSERS_UNAVAILABLE', 'PROFILE_NOT_OPENED', 'PROFILE_UNUSABLE'].includes(code)
    ? 'unprocessable'
    : 'upstream';
  return new DomainError(kind, code, message);
}
