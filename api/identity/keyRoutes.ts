import { notFound } from '../../base/errors.ts';
import type { ApiKeyRow } from '../../models/identity/tables.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { optionalTime, time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

/** A user's API keys. */
export function keyRoutes({ identity }: RouteDeps) {
  const router = createRouter();

  router.get('/api/keys', async (req, res) => {
    const { data, nextCursor } = await identity.keys.list(callerOf(req).userId, pageOf(req));
    answer<'listApiKeys'>(res, 200, { data: data.map(presentApiKey), nextCursor });
  });

  router.post('/api/keys', async (req, res) => {
    const caller = callerOf(req);
    const { name, scopes, expiresAt } = bodyOf<'createApiKey'>(req);
    const { row, key } = await identity.keys.create(caller.userId, {
      name,
      scopes,
      expiresAt: expiresAt == null ? null : new Date(expiresAt),
      actor: actorOf(req),
      madeWith: caller.via === 'apiKey' ? caller : undefined,
    });
    answer<'createApiKey'>(res, 201, { ...presentApiKey(row), key });
  });

  router.delete('/api/keys/:keyId', async (req, res) => {
    const { keyId } = pathOf<'revokeApiKey'>(req);
    if (!(await identity.keys.revoke(callerOf(req).userId, keyId, actorOf(req)))) throw notFound('API key');
    res.status(204).end();
  });

  return router;
}

type ApiKey = components['schemas']['ApiKey'];

/** A key without its text, which is not stored. */
function presentApiKey(key: ApiKeyRow): ApiKey {
  return {
    id: key.id,
    name: key.name,
    hint: key.hint,
    scopes: JSON.parse(key.scopes) as ApiKey['scopes'],
    createdAt: time(key.createdAt),
    expiresAt: optionalTime(key.expiresAt),
    lastUsedAt: optionalTime(key.lastUsedAt),
  };
}
