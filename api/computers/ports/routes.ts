import { DomainError } from '../../../base/errors.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import type { PortLink } from '../../../models/computers/portLink.ts';
import { answer } from '../../frame/answer.ts';
import { actorOf } from '../../frame/auth/actor.ts';
import { authorityOf, type Caller, callerOf } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { makeOnce } from '../../frame/idempotency.ts';
import { bodyOf, pathOf } from '../../frame/request.ts';
import { createRouter } from '../../frame/router.ts';
import { time } from '../../frame/times.ts';
import { openPath } from './hosts.ts';

const defaultTtlSeconds = 3_600;

/** Links to ports. hosts.ts serves them. */
export function portRoutes(deps: RouteDeps) {
  const { config, database, portLinks } = deps;
  const router = createRouter();
  const base = '/api/spaces/:spaceId/computers/:computerId/ports';

  router.get(base, async (req, res) => {
    const { spaceId, computerId } = pathOf<'listPortLinks'>(req);
    await getComputer(database, spaceId, computerId);
    answer<'listPortLinks'>(res, 200, { data: (await portLinks.list(computerId)).map(present), nextCursor: null });
  });

  router.post(base, async (req, res) => {
    const { spaceId, computerId } = pathOf<'createPortLink'>(req);
    const { port, ttlSeconds = defaultTtlSeconds } = bodyOf<'createPortLink'>(req);
    await getComputer(database, spaceId, computerId);
    requireDomain(deps);
    const caller = callerOf(req);
    const { apiKeyId } = authorityOf(caller);
    const fields = { spaceId, computerId, port, ttlSeconds, createdBy: caller.userId, apiKeyId };
    await makeOnce<'createPortLink', { id: string }>(
      deps,
      req,
      res,
      'portLink',
      async (id) => ({ id: (await portLinks.create({ ...fields, id }, actorOf(req))).id }),
      {
        // Only a hash of the token is stored, so the URL gets a new token.
        show: async ({ id }) => {
          const link = await portLinks.get({ spaceId, computerId, linkId: id });
          return { ...present(link), url: await linkUrl(deps, link, caller) };
        },
      },
    );
  });

  router.delete(`${base}/:linkId`, async (req, res) => {
    await portLinks.revoke(await portLinks.get(pathOf<'deletePortLink'>(req)), actorOf(req));
    res.status(204).end();
  });

  router.post(`${base}/:linkId/url`, async (req, res) => {
    const link = await portLinks.get(pathOf<'createPortLinkUrl'>(req));
    answer<'createPortLinkUrl'>(res, 201, {
      url: await linkUrl(deps, link, callerOf(req)),
      expiresAt: time(link.expiresAt),
    });
  });

  function present({ id, computerId, port, label, createdBy, createdAt, expiresAt }: PortLink) {
    const origin = config.ports.originOf(label);
    return { id, computerId, port, origin, createdBy, createdAt: time(createdAt), expiresAt: time(expiresAt) };
  }

  return router;
}

/** Makes an address that admits one browser to a link, once. Throws 410 `PORT_LINK_ENDED`, 422 `TOO_MANY_VISITORS`. */
export async function linkUrl(
  { config, portLinks }: Pick<RouteDeps, 'config' | 'portLinks'>,
  link: PortLink,
  caller: Caller,
): Promise<string> {
  const { apiKeyId } = authorityOf(caller);
  const sessionId = caller.via === 'session' ? caller.sessionId : null;
  const token = await portLinks.newToken(link, { userId: caller.userId, apiKeyId, sessionId });
  return `${config.ports.originOf(link.label)}${openPath}?token=${token}`;
}

/** Throws 422 if no domain for links is configured. */
export function requireDomain({ config }: Pick<RouteDeps, 'config'>): void {
  if (config.ports.isReachable) return;
  const detail =
    'Links need a domain. The operator must set ATRIUM_PORTS_DOMAIN to a domain whose subdomains all lead to this server.';
  throw new DomainError('unprocessable', 'PORTS_DOMAIN_MISSING', detail);
}
