import { DomainError } from '../../base/errors.ts';
import { parseHostPattern } from '../../integrations/egress/hostPattern.ts';
import type { EgressSettings, LoggedEgress } from '../../models/egress/egressRules.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { time } from '../frame/times.ts';

/** Where a space's agents may connect, and where they have connected. */
export function egressRoutes(deps: RouteDeps) {
  const { egressRules } = deps;
  const router = createRouter();

  router.get('/api/spaces/:spaceId/egress', async (req, res) => {
    answer<'getEgress'>(res, 200, presentSettings(await egressRules.settings(pathOf<'getEgress'>(req).spaceId)));
  });

  router.put('/api/spaces/:spaceId/egress', async (req, res) => {
    const { spaceId } = pathOf<'putEgress'>(req);
    const { allow = [], deny = [] } = bodyOf<'putEgress'>(req);
    for (const [name, patterns] of Object.entries({ allow, deny })) requirePatterns(name, patterns);
    const { userId } = callerOf(req);
    await egressRules.put(spaceId, { allow, deny }, { ...actorOf(req), userId });
    answer<'putEgress'>(res, 200, presentSettings(await egressRules.settings(spaceId)));
  });

  router.get('/api/spaces/:spaceId/egress/log', async (req, res) => {
    const { data, nextCursor } = await egressRules.list(pathOf<'listEgressLog'>(req).spaceId, pageOf(req));
    answer<'listEgressLog'>(res, 200, { data: data.map(presentEntry), nextCursor });
  });

  return router;
}

function requirePatterns(name: string, patterns: readonly string[]): void {
  const index = patterns.findIndex((pattern) => parseHostPattern(pattern) === undefined);
  if (index < 0) return;
  const detail =
    'Write example.com, *.example.com, an IP address or a network (10.1.0.0/16). Add a :port to allow only that port.';
  throw new DomainError('unprocessable', 'EGRESS_PATTERN_INVALID', 'This is not a valid host pattern.', {
    errors: [{ pointer: `/${name}/${index}`, detail }],
  });
}

function presentSettings({ allow, deny, updatedBy, updatedAt }: EgressSettings) {
  return { allow, deny, updatedBy, updatedAt: updatedAt === null ? null : time(updatedAt) };
}

function presentEntry({ purpose, host, port, address, refusal, secret = null, at }: LoggedEgress) {
  return { purpose, host, port, address, refusal, secret, at: time(at) };
}
