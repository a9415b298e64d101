import type { Request, Response } from 'express';
import { getComputer } from '../../models/computers/computer.ts';
import { askToFork } from '../../models/computers/forks.ts';
import {
  type Asked,
  askToDelete,
  askToPause,
  askToRecover,
  askToStop,
  askToWake,
} from '../../models/computers/wishes.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { doneOrLater, GoesOn, outcomeOf } from '../frame/operationAnswer.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentComputer } from './routes.ts';

/** Routes that change whether a computer runs. A workflow does it, and the request waits for that. */
export function lifeRoutes(deps: RouteDeps) {
  const { database, liveComputers } = deps;
  const router = createRouter();

  router.post('/api/spaces/:spaceId/computers/:computerId/wake', async (req, res) => {
    const where = pathOf<'wakeComputer'>(req);
    const isDone = await done(req, res, await askToWake(deps, { ...where, actor: actorOf(req) }));
    if (isDone) answer<'wakeComputer'>(res, 200, { ok: true, id: where.computerId });
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/stop', async (req, res) => {
    const where = pathOf<'stopComputer'>(req);
    const isDone = await done(req, res, await askToStop(deps, { ...where, actor: actorOf(req) }));
    if (isDone) answer<'stopComputer'>(res, 200, await show(where));
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/pause', async (req, res) => {
    const where = pathOf<'pauseComputer'>(req);
    await liveComputers.settled(where);
    const isDone = await done(req, res, await askToPause(deps, { ...where, actor: actorOf(req) }));
    if (isDone) answer<'pauseComputer'>(res, 200, await show(where));
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/recover', async (req, res) => {
    const where = pathOf<'recoverComputer'>(req);
    const { discardHome = false } = bodyOf<'recoverComputer'>(req) ?? {};
    const isDone = await done(req, res, await askToRecover(deps, { ...where, discardHome, actor: actorOf(req) }));
    if (isDone) answer<'recoverComputer'>(res, 200, await show(where));
  });

  router.post('/api/spaces/:spaceId/computers/:computerId/fork', async (req, res) => {
    const { spaceId, computerId } = pathOf<'forkComputer'>(req);
    const { name } = bodyOf<'forkComputer'>(req) ?? {};
    await makeOnce<'forkComputer'>(deps, req, res, 'computer', async (id) => {
      const asked = await askToFork(deps, { spaceId, computerId, id, name, actor: actorOf(req) });
      const { operation } = asked;
      if (operation === undefined) return presentComputer(deps, asked.computer);
      const outcome = await outcomeOf(deps, req, operation);
      return outcome instanceof GoesOn ? outcome : show({ spaceId, computerId: id });
    });
  });

  router.delete('/api/spaces/:spaceId/computers/:computerId', async (req, res) => {
    const where = pathOf<'deleteComputer'>(req);
    const isDone = await done(req, res, await askToDelete(deps, { ...where, actor: actorOf(req) }));
    if (isDone) res.status(204).end();
  });

  async function show({ spaceId, computerId }: { spaceId: string; computerId: string }) {
    return presentComputer(deps, await getComputer(database, spaceId, computerId));
  }

  const done = (req: Request, res: Response, { operation }: Asked) => doneOrLater(deps, req, res, operation);

  return router;
}
