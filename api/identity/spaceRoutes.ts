import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { spaceOf } from '../frame/auth/authorizeSpace.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentSpace } from './presentSpace.ts';

/** Spaces themselves. Their members are in memberRoutes.ts. */
export function spaceRoutes(deps: RouteDeps) {
  const { identity } = deps;
  const router = createRouter();

  router.get('/api/spaces', async (req, res) => {
    const { data, nextCursor } = await identity.spaces.list(callerOf(req).userId, pageOf(req));
    answer<'listSpaces'>(res, 200, { data: data.map(presentSpace), nextCursor });
  });

  router.post('/api/spaces', async (req, res) => {
    const { name } = bodyOf<'createSpace'>(req);
    const { userId } = callerOf(req);
    await makeOnce<'createSpace'>(deps, req, res, 'space', async (id) =>
      presentSpace(await identity.spaces.create(userId, name, { id, actor: actorOf(req) })),
    );
  });

  router.get('/api/spaces/:spaceId', async (req, res) => {
    answer<'getSpace'>(res, 200, presentSpace(spaceOf(req)));
  });

  router.patch('/api/spaces/:spaceId', async (req, res) => {
    const { spaceId } = pathOf<'updateSpace'>(req);
    const { name } = bodyOf<'updateSpace'>(req);
    const access = spaceOf(req);
    if (name !== undefined) await identity.spaces.rename(spaceId, name, actorOf(req));
    answer<'updateSpace'>(
      res,
      200,
      presentSpace({ ...access, space: { ...access.space, name: name ?? access.space.name } }),
    );
  });

  router.delete('/api/spaces/:spaceId', async (req, res) => {
    const { spaceId } = pathOf<'deleteSpace'>(req);
    const operation = await identity.spaces.remove(spaceId, callerOf(req).userId);
    void deps.launcher.startOperation(operation);
    res.status(204).location(`/api/operations/${operation.id}`).end();
  });

  return router;
}
