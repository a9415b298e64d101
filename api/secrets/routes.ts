import { exportStatement } from '../../models/secrets/exports.ts';
import { reservedBecause } from '../../models/secrets/names.ts';
import type { SecretInfo } from '../../models/secrets/secrets.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

/** The named secrets of a space. */
export function secretRoutes({ secrets: { named } }: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/secrets', async (req, res) => {
    const { spaceId } = pathOf<'listSecrets'>(req);
    const { data, nextCursor } = await named.list(spaceId, pageOf(req));
    answer<'listSecrets'>(res, 200, { data: data.map(presentSecret), nextCursor });
  });

  router.get('/api/spaces/:spaceId/secrets/env', async (req, res) => {
    const { spaceId } = pathOf<'getSecretsEnv'>(req);
    const values = await named.readAll(spaceId, actorOf(req));
    answer<'getSecretsEnv'>(res, 200, { secrets: values.map(({ name, value }) => exportStatement(name, value)) });
  });

  router.put('/api/spaces/:spaceId/secrets/:name', async (req, res) => {
    const { spaceId, name } = pathOf<'setSecret'>(req);
    const { value } = bodyOf<'setSecret'>(req);
    const { isNew, info } = await named.put(spaceId, name, value, actorOf(req));
    answer<'setSecret'>(res, isNew ? 201 : 200, presentSecret(info));
  });

  router.delete('/api/spaces/:spaceId/secrets/:name', async (req, res) => {
    const { spaceId, name } = pathOf<'deleteSecret'>(req);
    await named.remove(spaceId, name, actorOf(req));
    res.status(204).end();
  });

  return router;
}

/** A secret without its value. */
function presentSecret(secret: SecretInfo): components['schemas']['Secret'] {
  const { name, createdAt, updatedAt, updatedBy } = secret;
  const leftOutBecause = reservedBecause(name) ?? null;
  return { name, createdAt: time(createdAt), updatedAt: time(updatedAt), updatedBy, leftOutBecause };
}
