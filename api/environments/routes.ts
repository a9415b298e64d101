import { contextPath } from '../../models/environments/copiedFiles.ts';
import {
  type Definition,
  definitionOf,
  type GivenDefinition,
} from '../../models/environments/definition/definition.ts';
import { deleteEnvironment } from '../../models/environments/deletion.ts';
import {
  buildAgain,
  createEnvironment,
  type Environment,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../models/environments/environment.ts';
import { getVersion, listVersions, type Version } from '../../models/environments/version.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { type BodyOf, bodyOf, pageOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentEnvironment, presentEnvironments, presentVersions } from './present.ts';

/** Environments of a space, and their builds. */
export function environmentRoutes(deps: RouteDeps) {
  const { database, launcher } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/environments';

  router.get(base, async (req, res) => {
    const { spaceId } = pathOf<'listEnvironments'>(req);
    const { data, nextCursor } = await listEnvironments(database, spaceId, pageOf(req));
    answer<'listEnvironments'>(res, 200, { data: await presentEnvironments(deps, data, spaceId), nextCursor });
  });

  router.post(base, async (req, res) => {
    const { spaceId } = pathOf<'createEnvironment'>(req);
    const { name, ...given } = bodyOf<'createEnvironment'>(req);
    const definition = await read(spaceId, given);
    await makeOnce<'createEnvironment'>(deps, req, res, 'environment', async (id) => {
      const versionId = id.replace(/^env_/, 'evr_');
      const request = { id, versionId, spaceId, name, definition, actor: actorOf(req) };
      return begun(await createEnvironment(deps, request));
    });
  });

  router.get(`${base}/:environmentId`, async (req, res) => {
    const { spaceId, environmentId } = pathOf<'getEnvironment'>(req);
    const environment = await getEnvironment(database.pool, spaceId, environmentId);
    answer<'getEnvironment'>(res, 200, await presentEnvironment(deps, environment, spaceId));
  });

  router.patch(`${base}/:environmentId`, async (req, res) => {
    const { spaceId, environmentId } = pathOf<'updateEnvironment'>(req);
    const { name, ...given } = bodyOf<'updateEnvironment'>(req);
    const definition = Object.keys(given).length > 0 ? await read(spaceId, given) : undefined;
    const request = { spaceId, environmentId, name, definition, actor: actorOf(req) };
    const changed = await updateEnvironment(deps, request);
    answer<'updateEnvironment'>(res, 200, await presentEnvironment(deps, changed, spaceId));
  });

  router.delete(`${base}/:environmentId`, async (req, res) => {
    const { force: isForced = false } = queryOf<'deleteEnvironment'>(req);
    await deleteEnvironment(deps, { ...pathOf<'deleteEnvironment'>(req), isForced, actor: actorOf(req) });
    res.status(204).end();
  });

  router.post(`${base}/:environmentId/build`, async (req, res) => {
    const where = pathOf<'buildEnvironment'>(req);
    const { withoutCache = false } = bodyOf<'buildEnvironment'>(req) ?? {};
    await makeOnce<'buildEnvironment'>(deps, req, res, 'environmentVersion', async (versionId) =>
      begun(await buildAgain(deps, { ...where, versionId, withoutCache, actor: actorOf(req) })),
    );
  });

  router.get(`${base}/:environmentId/versions`, async (req, res) => {
    const { spaceId, environmentId } = pathOf<'listEnvironmentVersions'>(req);
    await getEnvironment(database.pool, spaceId, environmentId);
    const { data, nextCursor } = await listVersions(database, { spaceId, environmentId }, pageOf(req));
    answer<'listEnvironmentVersions'>(res, 200, { data: await presentVersions(deps, data, spaceId), nextCursor });
  });

  type Given = Omit<BodyOf<'createEnvironment'>, 'name'>;

  async function read(spaceId: string, { contextFolderId, ...given }: Given): Promise<Definition> {
    const context = contextFolderId === undefined ? undefined : await contextPath(database, spaceId, contextFolderId);
    return definitionOf(given as GivenDefinition, context);
  }

  /** Starts the build that the rows order. */
  async function begun(environment: Environment) {
    const { id: environmentId, spaceId } = environment;
    startBuild(await getVersion(database, { spaceId, environmentId }));
    return presentEnvironment(deps, environment, spaceId);
  }

  function startBuild({ id, operationId, spaceId, status, createdBy }: Version): void {
    if (status !== 'building') return;
    const operation = { id: operationId, kind: 'buildEnvironment', spaceId, userId: createdBy, subjectId: id };
    void launcher.startOperation(operation);
  }

  return router;
}
