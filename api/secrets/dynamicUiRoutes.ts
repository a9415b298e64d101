import { DomainError } from '../../base/errors.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { authorizeOperation } from '../frame/auth/authorizeSpace.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

const defaultTtl = '1h';

/** What people type into the forms that agents show. Every member who may chat in a space may fill in its forms. */
export function dynamicUiRoutes(deps: RouteDeps) {
  const router = createRouter();

  router.post('/api/dynamic-ui/secrets', async (req, res) => {
    const caller = callerOf(req);
    const { name, field, value, ttl, ...body } = bodyOf<'storeDynamicSecret'>(req);
    const spaceId = body.spaceId ?? (await deps.identity.spaces.defaultFor(caller.userId));
    if (spaceId === undefined) {
      throw new DomainError('unprocessable', 'SPACE_REQUIRED', 'You have no default space. Set `spaceId`.');
    }
    await authorizeOperation(deps, req, spaceId);
    const secret = { name, field, value, ttl: ttl ?? defaultTtl };
    answer<'storeDynamicSecret'>(res, 200, {
      secretId: await deps.secrets.dynamic.store(spaceId, secret, actorOf(req)),
    });
  });

  return router;
}
