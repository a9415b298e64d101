import type { Request, Response } from 'express';
import { notFound } from '../../base/errors.ts';
import { getAppOf } from '../../models/apps/app.ts';
import { appsConnectedTo } from '../../models/databases/connections.ts';
import { getDatabase, listDatabases } from '../../models/databases/spaceDatabase.ts';
import type { Asked } from '../../models/databases/wishes.ts';
import type { Operation } from '../../models/operations/operation.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { doneOrLater, GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentConnection, presentDatabase, showDatabase } from './presentDatabase.ts';
import { requireServer } from './requireServer.ts';

const base = '/api/spaces/:spaceId/databases';

/** The databases of spaces. Each change is made by the database's workflow. The request waits for it. */
export function databaseRoutes(deps: RouteDeps) {
  const { config, database, spaceDatabases, tenantServer } = deps;
  const { wishes } = spaceDatabases;
  const router = createRouter();

  router.get(base, async (req, res) => {
    const { spaceId } = pathOf<'listDatabases'>(req);
    const { data, nextCursor } = await listDatabases(database, spaceId, pageOf(req));
    const apps = await appsConnectedTo(
      database,
      data.map(({ id }) => id),
    );
    answer<'listDatabases'>(res, 200, {
      data: data.map((one) => presentDatabase(one, apps.get(one.id) ?? [], config.databases)),
      nextCursor,
    });
  });

  router.post(base, async (req, res) => {
    requireServer(tenantServer);
    const { spaceId } = pathOf<'createDatabase'>(req);
    const { name } = bodyOf<'createDatabase'>(req);
    await makeOnce<'createDatabase'>(deps, req, res, 'spaceDatabase', async (id) => {
      const operation = await wishes.make({ id, spaceId, name }, actorOf(req));
      const outcome = operation && (await outcomeOf(deps, req, operation));
      return outcome instanceof GoesOn ? outcome : showDatabase(deps, { spaceId, id });
    });
  });

  router.get(`${base}/:databaseId`, async (req, res) => {
    const { spaceId, databaseId: id } = pathOf<'getDatabase'>(req);
    answer<'getDatabase'>(res, 200, await showDatabase(deps, { spaceId, id }));
  });

  router.patch(`${base}/:databaseId`, async (req, res) => {
    const { spaceId, databaseId: id } = pathOf<'renameDatabase'>(req);
    const { name } = bodyOf<'renameDatabase'>(req);
    await wishes.rename({ spaceId, id, name, actor: actorOf(req) });
    answer<'renameDatabase'>(res, 200, await showDatabase(deps, { spaceId, id }));
  });

  router.delete(`${base}/:databaseId`, async (req, res) => {
    const asked = askedOf(req, pathOf<'deleteDatabase'>(req));
    if (await done(req, res, await wishes.remove(asked))) res.status(204).end();
  });

  router.post(`${base}/:databaseId/restore`, async (req, res) => {
    const asked = askedOf(req, pathOf<'restoreDatabase'>(req));
    if (!(await done(req, res, await wishes.restore(asked)))) return;
    answer<'restoreDatabase'>(res, 200, await showDatabase(deps, asked));
  });

  router.post(`${base}/:databaseId/purge`, async (req, res) => {
    const asked = askedOf(req, pathOf<'purgeDatabase'>(req));
    if (await done(req, res, await wishes.purge(asked))) res.status(204).end();
  });

  router.post(`${base}/:databaseId/compact`, async (req, res) => {
    const asked = askedOf(req, pathOf<'compactDatabase'>(req));
    if (await done(req, res, await wishes.compact(asked))) res.status(204).end();
  });

  router.get(`${base}/:databaseId/connection`, async (req, res) => {
    const asked = askedOf(req, pathOf<'getDatabaseConnection'>(req));
    answer<'getDatabaseConnection'>(res, 200, await connectionOf(asked));
  });

  router.post(`${base}/:databaseId/rotate`, async (req, res) => {
    const asked = askedOf(req, pathOf<'rotateDatabase'>(req));
    const { now = false } = bodyOf<'rotateDatabase'>(req) ?? {};
    // The password is not stored with the Idempotency-Key.
    const options = { status: 200, show: () => connectionOf(asked) };
    await makeOnce<'rotateDatabase', { id: string }>(
      deps,
      req,
      res,
      'operation',
      async (operationId) => {
        const operation = await wishes.rotate({ ...asked, operationId, now });
        const outcome = operation && (await outcomeOf(deps, req, operation));
        return outcome instanceof GoesOn ? outcome : { id: asked.id };
      },
      options,
    );
  });

  router.post(`${base}/:databaseId/apps/:appId`, async (req, res) => {
    const { appId: itemId, ...where } = pathOf<'connectApp'>(req);
    const asked = askedOf(req, where);
    await getDatabase(database, asked);
    const app = await getAppOf(database, itemId);
    if (app.spaceId !== asked.spaceId) throw notFound('app');
    if (await done(req, res, await wishes.connect({ ...asked, app }))) {
      answer<'connectApp'>(res, 200, { success: true });
    }
  });

  router.delete(`${base}/:databaseId/apps/:appId`, async (req, res) => {
    const { appId: itemId, ...where } = pathOf<'disconnectApp'>(req);
    if (await done(req, res, await wishes.disconnect({ ...askedOf(req, where), itemId }))) res.status(204).end();
  });

  function askedOf(req: Request, { spaceId, databaseId: id }: { spaceId: string; databaseId: string }): Asked {
    requireServer(tenantServer);
    return { spaceId, id, actor: actorOf(req) };
  }

  async function connectionOf(asked: Asked): Promise<AnswerOf<'getDatabaseConnection'>> {
    return presentConnection(requireServer(tenantServer), await spaceDatabases.connection(asked));
  }

  const done = (req: Request, res: Response, operation: Operation | undefined) =>
    doneOrLater(deps, req, res, operation);

  return router;
}
