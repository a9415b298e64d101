import { approveVersion, refuseVersion, requireVersion } from '../../models/apps/takeVersion.ts';
import { type AppFiles, type AppVersion, listVersions } from '../../models/apps/version.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorityOf, callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { optionalTime, time } from '../frame/times.ts';
import { authorizeApp } from './authorizeApp.ts';

const mostAuthors = 100;
/** The maximum number of files named for each kind of difference. */
const mostNamed = 500;

/** The versions of an app: in use, waiting for approval, and earlier ones. */
export function versionRoutes(deps: RouteDeps) {
  const { database } = deps;
  const router = createRouter();
  const base = '/api/apps/:driveItemId/versions';

  router.get(base, async (req, res) => {
    const { app } = await authorizeApp(deps, req, pathOf<'listAppVersions'>(req).driveItemId);
    const { data, nextCursor } = await listVersions(database, app.id, pageOf(req));
    answer<'listAppVersions'>(res, 200, { data: data.map(presentVersion), nextCursor });
  });

  router.get(`${base}/:versionId`, async (req, res) => {
    const { driveItemId, versionId } = pathOf<'getAppVersion'>(req);
    const { app } = await authorizeApp(deps, req, driveItemId);
    const version = await requireVersion(database, app, versionId);
    const base = app.baseId === null ? undefined : await requireVersion(database, app, app.baseId);
    const { components } = version.manifest;
    const files = version.files && differences(base?.files ?? {}, version.files);
    answer<'getAppVersion'>(res, 200, { ...presentVersion(version), components, files });
  });

  router.post(`${base}/:versionId/approve`, async (req, res) => {
    const { driveItemId, versionId } = pathOf<'approveAppVersion'>(req);
    const { app } = await authorizeApp(deps, req, driveItemId);
    requireScope(callerOf(req), 'approvals', ', which a decision about a version needs');
    const by = { versionId, actor: actorOf(req), authority: authorityOf(callerOf(req)) };
    answer<'approveAppVersion'>(res, 200, presentVersion(await approveVersion(database, app, by)));
  });

  router.post(`${base}/:versionId/refuse`, async (req, res) => {
    const { driveItemId, versionId } = pathOf<'refuseAppVersion'>(req);
    const { app } = await authorizeApp(deps, req, driveItemId);
    const version = await refuseVersion(database, app, { versionId, actor: actorOf(req) });
    answer<'refuseAppVersion'>(res, 200, presentVersion(version));
  });

  return router;
}

function presentVersion(version: AppVersion): AnswerOf<'listAppVersions'>['data'][number] {
  const { id, state, reasons, authors, userId, decidedBy } = version;
  const changedBy = authors
    .slice(-mostAuthors)
    .map(({ userId: by, apiKeyId, turnId }) => ({ userId: by, apiKeyId, turnId }));
  const decided = { decidedBy, decidedAt: optionalTime(version.decidedAt) };
  return { id, state, reasons, changedBy, runsAs: userId, createdAt: time(version.createdAt), ...decided };
}

/** The paths whose files differ between two versions. */
function differences(before: AppFiles, now: AppFiles) {
  const [old, present] = [new Map(Object.entries(before)), new Map(Object.entries(now))];
  const shown = (paths: string[]) => paths.sort().slice(0, mostNamed);
  return {
    added: shown([...present.keys()].filter((path) => !old.has(path))),
    changed: shown(
      [...present.keys()].filter((path) => (old.get(path) ?? present.get(path))?.sha256 !== present.get(path)?.sha256),
    ),
    removed: shown([...old.keys()].filter((path) => !present.has(path))),
  };
}
