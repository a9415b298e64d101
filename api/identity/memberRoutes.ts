import type { Member } from '../../models/identity/members.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';
import { invite } from './invite.ts';

/** The members of a space and their roles. */
export function memberRoutes(deps: RouteDeps) {
  const { members } = deps.identity;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/members', async (req, res) => {
    const { spaceId } = pathOf<'listMembers'>(req);
    const { data, nextCursor } = await members.list(spaceId, pageOf(req));
    answer<'listMembers'>(res, 200, { data: data.map(presentMember), nextCursor });
  });

  router.post('/api/spaces/:spaceId/members', async (req, res) => {
    // People join only by accepting an invitation, and the answer does not reveal who has an account here.
    const invitation = await invite(deps, req, bodyOf<'addMember'>(req));
    answer<'addMember'>(res, 201, { ...invitation, status: 'invited' });
  });

  router.patch('/api/spaces/:spaceId/members/:userId', async (req, res) => {
    const { spaceId, userId } = pathOf<'changeMember'>(req);
    const { role } = bodyOf<'changeMember'>(req);
    answer<'changeMember'>(res, 200, presentMember(await members.changeRole(spaceId, userId, role, actorOf(req))));
  });

  router.delete('/api/spaces/:spaceId/members/:userId', async (req, res) => {
    const { spaceId, userId } = pathOf<'removeMember'>(req);
    await members.remove(spaceId, userId, actorOf(req));
    res.status(204).end();
  });

  return router;
}

function presentMember({ user, role, joinedAt }: Member): components['schemas']['Member'] {
  return { userId: user.id, email: user.email, name: user.name, role, joinedAt: time(joinedAt) };
}
