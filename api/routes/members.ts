import { actorOf } from '../auth/actor.ts';
import { authorizeSpace } from '../auth/authorizeSpace.ts';
import { callerOf } from '../auth/caller.ts';
import type { RouteDeps } from '../deps.ts';
import { presentMember } from '../presenters/member.ts';
import { bodyOf, pageOf, pathOf } from '../request.ts';
import { createRouter } from '../router.ts';

/** Who belongs to a space, and as what. */
export function memberRoutes(deps: RouteDeps) {
  const { members } = deps.identity;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/members', async (req, res) => {
    const { spaceId } = pathOf<'listMembers'>(req);
    await authorizeSpace(deps, callerOf(req), spaceId, 'viewer');
    const { data, nextCursor } = await members.list(spaceId, pageOf(req));
    res.json({ data: data.map(presentMember), nextCursor });
  });

  router.post('/api/spaces/:spaceId/members', async (req, res) => {
    const { spaceId } = pathOf<'addMember'>(req);
    const { email, role } = bodyOf<'addMember'>(req);
    await authorizeSpace(deps, callerOf(req), spaceId, 'owner');
    res.status(201).json(presentMember(await members.add(spaceId, email, role, actorOf(req))));
  });

  router.patch('/api/spaces/:spaceId/members/:userId', async (req, res) => {
    const { spaceId, userId } = pathOf<'changeMember'>(req);
    const { role } = bodyOf<'changeMember'>(req);
    await authorizeSpace(deps, callerOf(req), spaceId, 'owner');
    res.json(presentMember(await members.changeRole(spaceId, userId, role, actorOf(req))));
  });

  router.delete('/api/spaces/:spaceId/members/:userId', async (req, res) => {
    const { spaceId, userId } = pathOf<'removeMember'>(req);
    const caller = callerOf(req);
    // Anybody may leave; only an owner removes another.
    await authorizeSpace(deps, caller, spaceId, userId === caller.userId ? 'viewer' : 'owner');
    await members.remove(spaceId, userId, actorOf(req));
    res.status(204).end();
  });

  return router;
}
