import { notFound } from '../../base/errors.ts';
import type { SpaceAccess } from '../../models/identity/members.ts';
import type { SessionRow, UserRow } from '../../models/identity/tables.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { type Caller, callerOf, notAuthenticated } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';
import { presentSpace } from './presentSpace.ts';

const spacesShown = 200;

/** The caller's account and sessions. */
export function meRoutes({ identity }: RouteDeps) {
  const router = createRouter();

  router.get('/api/me', async (req, res) => {
    const { userId } = callerOf(req);
    const [user, spaces, defaultSpaceId] = await Promise.all([
      identity.users.byId(userId),
      identity.spaces.list(userId, { limit: spacesShown }),
      identity.spaces.defaultFor(userId),
    ]);
    if (user === undefined) throw notAuthenticated();
    answer<'getMe'>(res, 200, presentMe(user, defaultSpaceId, spaces.data));
  });

  router.get('/api/sessions', async (req, res) => {
    const caller = callerOf(req);
    const { data, nextCursor } = await identity.sessions.list(caller.userId, pageOf(req));
    answer<'listSessions'>(res, 200, {
      data: data.map((session) => presentSession(session, currentSessionOf(caller))),
      nextCursor,
    });
  });

  router.delete('/api/sessions/:sessionId', async (req, res) => {
    const { sessionId } = pathOf<'revokeSession'>(req);
    if (!(await identity.sessions.revoke(callerOf(req).userId, sessionId, actorOf(req)))) throw notFound('session');
    res.status(204).end();
  });

  return router;
}

function currentSessionOf(caller: Caller): string | undefined {
  return caller.via === 'session' ? caller.sessionId : undefined;
}

function presentSession(session: SessionRow, currentId: string | undefined): components['schemas']['Session'] {
  return {
    id: session.id,
    label: session.label,
    current: session.id === currentId,
    createdAt: time(session.createdAt),
    expiresAt: time(session.expiresAt),
  };
}

function presentMe(
  user: UserRow,
  defaultSpaceId: string | undefined,
  spaces: readonly SpaceAccess[],
): components['schemas']['Me'] {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    defaultSpaceId: defaultSpaceId ?? null,
    spaces: spaces.map(presentSpace),
  };
}
