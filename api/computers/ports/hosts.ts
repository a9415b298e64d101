import express, { type Request, type Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { labelPattern, type PortLink } from '../../../models/computers/portLink.ts';
import type { VisitAsker } from '../../../models/computers/portVisits.ts';
import { type LinkMaker, mayUseLink } from '../../../models/identity/authority.ts';
import { linkHolds } from '../../../models/links/links.ts';
import { ConnectionCounter } from '../../frame/connectionLimits.ts';
import type { ApiDeps } from '../../frame/deps.ts';
import { accessLog } from '../../frame/middleware/accessLog.ts';
import { createRateLimits } from '../../frame/middleware/rateLimits.ts';
import { requestId } from '../../frame/middleware/requestId.ts';
import { refuseForeignPage } from '../../frame/origins.ts';
import { hostNameOf, type OwnHosts } from '../../frame/ownHosts.ts';
import { forward } from './forward.ts';
import { admissionsIn } from './headers.ts';
import { linkErrors } from './pages.ts';

/** The path on the link's own host that exchanges a token for a cookie. */
export const openPath = '/.atrium/open';
const lookAgainMs = 3_000;
/** A holder limits all links of its computer together. One link must not use up that limit. */
const connectionsPerLink = 100;
const readOnly: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Serves programs that listen on ports of computers. Each link has a host name below the configured domain. This app is
 * separate from the API's, and shares none of its cookies, CORS rules or credentials.
 */
export function portHosts(deps: ApiDeps): OwnHosts {
  const { config, portLinks, liveComputers, identity, closing, logger } = deps;
  const { domain, desktopHost, isSecure } = config.ports;
  const open = new ConnectionCounter(connectionsPerLink);
  const limits = createRateLimits(config);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', config.http.trustedProxies);
  app.use(requestId(), accessLog(logger));
  app.use((req, _res, next) => {
    // Log and metrics name the operation. Its body type `*/*` may be sent slowly.
    req.operation = { ...asOperation, method: req.method };
    next();
  });
  app.use(async (req, res) => {
    const label = labelOf(hostNameOf(req.headers.host));
    const cookies = admissionsIn(req.headers.cookie);
    const visit = label === undefined ? undefined : await portLinks.visit(label, cookies);
    // Limits attempts without admission.
    if (visit === undefined || visit.askers.length === 0) await limits.failedAuthentication(req, res);
    if (visit === undefined)
      throw new DomainError('notFound', 'PORT_LINK_UNKNOWN', 'There is no link at this address.');
    const { link, askers } = visit;
    if (!(await isGood(link))) throw ended();
    const isAdmitted = await mayStay(link, askers);
    if (req.method === 'GET' && req.path === openPath) return admit(req, res, link, isAdmitted);
    if (!isAdmitted) throw askers.length === 0 ? notAdmitted() : over();
    // The cookie alone admits a browser, which also sends it for requests of other pages, even of another tenant's
    // link.
    if (req.handshake !== undefined || !readOnly.has(req.method)) {
      // The browser may reach this host by another port than the public one, as through a tunnel.
      const own = config.ports.originOf(link.label);
      const reached = `${isSecure ? 'https' : 'http'}://${req.headers.host}`;
      refuseForeignPage(req, (origin) => origin === own || origin === reached);
    }
    await pass(req, res, link, cookies);
  });
  app.use(linkErrors());

  /** A link is valid only while its maker may use it. */
  async function isGood(link: PortLink): Promise<boolean> {
    const { createdBy: userId, apiKeyId } = link;
    // The link outlives a session: only visits depend on one.
    return linkHolds(link) && may(link, { userId, apiKeyId, sessionId: null });
  }

  /** A browser stays admitted while one of the users who asked for its admission may use the link and is signed in. */
  async function mayStay(link: PortLink, askers: readonly VisitAsker[]): Promise<boolean> {
    for (const asker of askers) if (await may(link, asker)) return true;
    return false;
  }

  const may = ({ spaceId }: PortLink, by: Omit<LinkMaker, 'spaceId'>): Promise<boolean> =>
    mayUseLink(identity, { ...by, spaceId }, 'editor');

  async function admit(req: Request, res: Response, link: PortLink, isAdmitted: boolean): Promise<void> {
    const token = new URL(req.url, 'http://link').searchParams.get('token') ?? '';
    // A speculative load must not use up the token.
    const isGuess = /prefetch|prerender/.test(`${req.get('sec-purpose')} ${req.get('purpose')}`);
    if (isGuess) {
      throw new DomainError(
        'unavailable',
        'NOT_AHEAD_OF_TIME',
        'Browsers may not prefetch this address. Open it directly.',
      );
    }
    const asker = await portLinks.askerOf(link.id, token);
    if (asker !== undefined && !(await mayStay(link, [asker]))) throw over();
    const cookie = await portLinks.admit(link.id, token);
    if (cookie === undefined && !isAdmitted) throw tokenUsed();
    if (cookie !== undefined) res.setHeader('set-cookie', cookiesOf(cookie, link.expiresAt));
    res.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', location: '/' });
    res.status(303).end();
  }

  /** Browsers send only `SameSite=None` cookies to an iframe on another site, and some only over https. */
  function cookiesOf(value: string, expiresAt: Date): string[] {
    const lasting = `Path=/; HttpOnly; Expires=${expiresAt.toUTCString()}`;
    const everywhere = `=${value}; ${lasting}; Secure; SameSite=None; Partitioned`;
    if (isSecure) return [`__Host-atrium-port${everywhere}`];
    return [`atrium-port${everywhere}`, `atrium-port-lax=${value}; ${lasting}; SameSite=Lax`];
  }

  async function pass(req: Request, res: Response, link: PortLink, cookies: readonly string[]): Promise<void> {
    const leave = open.enter(link.id);
    const cut = new AbortController();
    const timer = setInterval(() => {
      const isOver = async () => {
        const visit = await portLinks.visit(link.label, cookies);
        if (visit === undefined) return true;
        return !(await isGood(visit.link)) || !(await mayStay(visit.link, visit.askers));
      };
      // A failed check ends nothing: the next one decides.
      isOver().then(
        (over) => over && cut.abort(),
        () => undefined,
      );
    }, lookAgainMs);
    const stop = () => cut.abort();
    // An open socket would keep the server from closing.
    if (req.handshake !== undefined) closing.addEventListener('abort', stop);
    try {
      const { spaceId, computerId } = link;
      const client = await liveComputers.running({ spaceId, computerId });
      const inside = await client.dialPort(link.port, { signal: cut.signal });
      const by = {
        address: req.ip ?? 'unknown',
        protocol: isSecure ? 'https' : 'http',
        host: req.headers.host ?? '',
        isUpgrade: req.handshake !== undefined,
      } as const;
      await forward(req, res, inside, by, cut.signal);
    } catch (error) {
      throw plainly(error, link);
    } finally {
      clearInterval(timer);
      closing.removeEventListener('abort', stop);
      leave();
    }
  }

  function labelOf(name: string): string | undefined {
    const label = name.slice(0, -domain.length - 1);
    return labelPattern.test(label) ? label : undefined;
  }

  return {
    // The desktops' page is on another name below the same domain.
    takes: (name) =>
      name.endsWith(`.${domain}`) && name !== desktopHost && name !== hostNameOf(new URL(config.http.publicUrl).host),
    handle: (req, res) => void app(req, res),
  };
}

const asOperation = {
  id: 'portLink',
  area: 'Computers',
  path: '(a link to a port)',
  isPublic: true,
  takesApiKey: false,
  scope: undefined,
  bodyTypes: ['*/*'],
  bodyRequired: false,
  isUpgrade: false,
  answerTypes: [],
  parameters: [],
};

function ended(): DomainError {
  return new DomainError('gone', 'PORT_LINK_ENDED', 'The link has expired or was revoked. Ask for a new one.');
}

function over(): DomainError {
  const detail = 'The user who created this access can no longer use the link. Ask for a new link.';
  return new DomainError('gone', 'PORT_VISIT_ENDED', detail);
}

function tokenUsed(): DomainError {
  const detail = 'This address works only once. It was already used or is incomplete. Ask for a new one.';
  return new DomainError('gone', 'PORT_TOKEN_USED', detail);
}

function notAdmitted(): DomainError {
  const detail = 'Open the complete address that you were given, and allow cookies for it.';
  return new DomainError('unauthenticated', 'PORT_NOT_ADMITTED', detail);
}

/** Translates errors for the visitor of a link. */
function plainly(error: unknown, { port }: PortLink): unknown {
  if (!(error instanceof DomainError)) return error;
  switch (error.code) {
    case 'PORT_NOT_LISTENING': {
      const detail = `No program listens on port ${port} of this computer. Start it there, then load this page again.`;
      return new DomainError('upstream', error.code, detail);
    }
    case 'COMPUTER_NOT_RUNNING':
      return new DomainError(
        'unavailable',
        error.code,
        'Opening a link does not start the computer. Start it, and then start the program.',
      );
    case 'NOT_FOUND':
      return ended();
    default:
      return error;
  }
}
