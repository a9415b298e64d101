import type { Request } from 'express';
import { getProfile, listProfiles } from '../../models/browsers/profile.ts';
import { createProfile, deleteProfile, renameProfile } from '../../models/browsers/profiles.ts';
import { liveSessions } from '../../models/browsers/session.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { asItIs } from './look.ts';
import { presentProfile } from './present.ts';

/** Browser profiles of a space. */
export function browserProfileRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/browsers/profiles';

  router.get(base, async (req, res) => {
    const { spaceId } = pathOf<'listBrowserProfiles'>(req);
    const { data, nextCursor } = await listProfiles(database, spaceId, pageOf(req));
    const live = await liveOf(data.map(({ id }) => id));
    const profiles = data.map((profile) => presentProfile(profile, live));
    answer<'listBrowserProfiles'>(res, 200, { data: profiles, nextCursor });
  });

  router.post(base, async (req, res) => {
    const { spaceId } = pathOf<'createBrowserProfile'>(req);
    const { name, computerId } = bodyOf<'createBrowserProfile'>(req);
    await makeOnce<'createBrowserProfile'>(deps, req, res, 'browserProfile', async (id) =>
      presentProfile(await createProfile(deps, { spaceId, profileId: id, name, computerId }, actorOf(req)), []),
    );
  });

  router.get(`${base}/:profileId`, async (req, res) => {
    answer<'getBrowserProfile'>(res, 200, await shown(req));
  });

  router.patch(`${base}/:profileId`, async (req, res) => {
    const { name } = bodyOf<'updateBrowserProfile'>(req);
    await renameProfile(database, pathOf<'updateBrowserProfile'>(req), name, actorOf(req));
    answer<'updateBrowserProfile'>(res, 200, await shown(req));
  });

  router.delete(`${base}/:profileId`, async (req, res) => {
    await deleteProfile(database, pathOf<'deleteBrowserProfile'>(req), actorOf(req));
    res.status(204).end();
  });

  async function shown(req: Request) {
    const profile = await getProfile(database, pathOf<'getBrowserProfile'>(req));
    return presentProfile(profile, await liveOf([profile.id]));
  }

  async function liveOf(profileIds: string[]) {
    const live = await liveSessions(database, profileIds);
    return Promise.all(live.map((session) => asItIs(deps, session)));
  }

  return router;
}
