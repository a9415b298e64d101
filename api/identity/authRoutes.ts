import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

/** Exchanges one-time codes for sessions, makes codes, and signs out. */
export function authRoutes({ identity, limits }: RouteDeps) {
  const router = createRouter();

  router.post('/auth/exchange-code', async (req, res) => {
    const { code } = bodyOf<'exchangeCode'>(req);
    const label = req.headers['user-agent'];
    const sessionToken = await limits.guessing(req, res, () =>
      identity.codes.exchange(code, { label, address: req.ip ?? null }),
    );
    answer<'exchangeCode'>(res, 200, { sessionToken });
  });

  router.post('/auth/codes', async (req, res) => {
    const { code, expiresAt } = await identity.codes.create(callerOf(req).userId);
    answer<'createCode'>(res, 201, { code, expiresAt: time(expiresAt) });
  });

  router.post('/auth/logout', async (req, res) => {
    const caller = callerOf(req);
    if (caller.via === 'session') await identity.sessions.revoke(caller.userId, caller.sessionId, actorOf(req));
    res.status(204).end();
  });

  return router;
}
