import { isIP } from 'node:net';
import { DomainError } from '../../base/errors.ts';
import { parseAuthority, parseHostPattern } from '../../integrations/egress/hostPattern.ts';
import type { ComputerSecret } from '../../models/computers/computerSecrets.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

/** Secrets that a computer may use without knowing them. */
export function computerSecretRoutes({ computerSecrets }: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/computers/:computerId/secrets', async (req, res) => {
    const { spaceId, computerId } = pathOf<'listComputerSecrets'>(req);
    const secrets = await computerSecrets.list(spaceId, computerId);
    answer<'listComputerSecrets'>(res, 200, { data: secrets.map(presentComputerSecret) });
  });

  router.put('/api/spaces/:spaceId/computers/:computerId/secrets/:name', async (req, res) => {
    const { spaceId, computerId, name } = pathOf<'putComputerSecret'>(req);
    const { hosts, variable = name, inUrl = false, headers = [] } = bodyOf<'putComputerSecret'>(req);
    requireNames(hosts);
    const asked = { name, variable, hosts, inUrl, headers };
    const { isNew, secret } = await computerSecrets.put({ spaceId, computerId }, asked, actorOf(req));
    answer<'putComputerSecret'>(res, isNew ? 201 : 200, presentComputerSecret(secret));
  });

  router.delete('/api/spaces/:spaceId/computers/:computerId/secrets/:name', async (req, res) => {
    const { spaceId, computerId, name } = pathOf<'deleteComputerSecret'>(req);
    await computerSecrets.remove({ spaceId, computerId }, name, actorOf(req));
    res.status(204).end();
  });

  return router;
}

/**
 * Requires host names: a certificate proves who answers to a name, and no certificate covers all names below `.com`.
 */
function requireNames(hosts: readonly string[]): void {
  const index = hosts.findIndex((text) => {
    const named = parseAuthority(text.replace(/^\*\./, ''));
    if (named === undefined || isIP(named.host) !== 0 || parseHostPattern(text) === undefined) return true;
    return text.startsWith('*.') && !named.host.includes('.');
  });
  if (index < 0) return;
  const detail = 'Write a name, such as api.example.com or *.example.com, with a :port where it is not 443.';
  throw new DomainError('unprocessable', 'SECRET_HOST_INVALID', 'This is not a host that a secret can be for.', {
    errors: [{ pointer: `/hosts/${index}`, detail }],
  });
}

function presentComputerSecret({ name, variable, hosts, inUrl, headers, updatedAt, updatedBy }: ComputerSecret) {
  return { name, variable, hosts, inUrl, headers, updatedAt: time(updatedAt), updatedBy };
}
