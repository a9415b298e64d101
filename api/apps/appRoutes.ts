import { type App, listApps, makeApp, removeApp } from '../../models/apps/app.ts';
import { lookAtApp, requireManifestOf } from '../../models/apps/lookAtApp.ts';
import { placeOfRuns } from '../../models/apps/placeOfRuns.ts';
import type { Database } from '../../models/database/database.ts';
import { findPlaces } from '../../models/drive/place.ts';
import { authorizeItem } from '../drive/authorizeDrive.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import { authorizeApp } from './authorizeApp.ts';

/** Apps and their manifests. */
export function appRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/apps', async (req, res) => {
    const { spaceId } = pathOf<'listApps'>(req);
    const { data, nextCursor } = await listApps(database, spaceId, pageOf(req));
    const places = await findPlaces(
      database,
      data.map(({ itemId }) => itemId),
    );
    const shown = data.flatMap((app) => {
      const place = places.get(app.itemId);
      return place?.isLive === true ? [presentApp(database, app, place.path)] : [];
    });
    answer<'listApps'>(res, 200, { data: await Promise.all(shown), nextCursor });
  });

  router.post('/api/spaces/:spaceId/apps', async (req, res) => {
    const { spaceId } = pathOf<'createApp'>(req);
    const { itemId } = bodyOf<'createApp'>(req);
    const { item, place } = await authorizeItem(deps, callerOf(req), { spaceId, itemId });
    const name = await requireManifestOf(deps, item, goneOf(res));
    const authority = authorityOf(callerOf(req));
    const { app, isNew } = await makeApp(database, { itemId, spaceId, name, authority, actor: actorOf(req) });
    const now = await lookAtApp(deps, app, item, goneOf(res));
    answer<'createApp'>(res, isNew ? 201 : 200, await presentApp(database, now, place.path));
  });

  router.get('/api/apps/:driveItemId', async (req, res) => {
    const { app, placed } = await authorizeApp(deps, req, pathOf<'getApp'>(req).driveItemId);
    const now = await lookAtApp(deps, app, placed.item, goneOf(res));
    answer<'getApp'>(res, 200, await presentApp(database, now, placed.place.path));
  });

  router.delete('/api/apps/:driveItemId', async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'removeApp'>(req).driveItemId);
    await removeApp(database, app, actorOf(req));
    res.status(204).end();
  });

  return router;
}

async function presentApp(database: Database, app: App, path: string): Promise<AnswerOf<'getApp'>> {
  const { itemId, spaceId, manifest, problem, versionId, waitingId: waitingVersionId, createdBy, createdAt } = app;
  const { kind, computerId, folder } = await placeOfRuns(database, app);
  const { name, components } = manifest;
  const made = { createdBy, createdAt: time(createdAt) };
  const versions = { versionId, waitingVersionId };
  return { id: itemId, spaceId, name, path, kind, computerId, folder, components, problem, ...versions, ...made };
}
