import express, { type Request, type Response } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { findDesktopLink } from '../../../models/desktops/links.ts';
import { findDesktop } from '../../../models/desktops/session.ts';
import type { DesktopViewer } from '../../../models/identity/desktopTokens.ts';
import { linkHolds } from '../../../models/links/links.ts';
import { openConnection } from '../../frame/connection.ts';
import { ConnectionCounter, connectionLimits } from '../../frame/connectionLimits.ts';
import type { ApiDeps } from '../../frame/deps.ts';
import { describeFailure } from '../../frame/failures.ts';
import { whenClosed } from '../../frame/goneOf.ts';
import { accessLog } from '../../frame/middleware/accessLog.ts';
import { createRateLimits } from '../../frame/middleware/rateLimits.ts';
import { requestId } from '../../frame/middleware/requestId.ts';
import { refuseForeignPage } from '../../frame/origins.ts';
import type { OwnHosts } from '../../frame/ownHosts.ts';
import { acceptUpgrade, offeredProtocols, webSocketServer } from '../../frame/upgrade.ts';
import { viewFiles } from './files.ts';
import { type Viewed, Viewing, viewCodes } from './viewing.ts';

/** Each viewer is one person. The limit stops a page that opens many. */
const viewersPerSession = 50;
/** Enough for a moving pointer, and for an answer to each picture. */
const limits = { ...connectionLimits, messagesPerSecond: 500, messagesAtOnce: 2_000 };

/**
 * Serves the page of desktops on a host name of its own, where the API's cookies and credentials are not sent. The
 * token of a viewer is in the fragment of the address, which browsers never send. The page itself sends it when it
 * connects.
 */
export function desktopHosts(deps: ApiDeps): OwnHosts {
  const { config, database, identity, closing, logger } = deps;
  const open = new ConnectionCounter(viewersPerSession);
  const failures = createRateLimits(config);
  const server = webSocketServer(limits);
  const app = express();
  app.disable('x-powered-by');
  app.set('trust proxy', config.http.trustedProxies);
  app.use(requestId(), accessLog(logger));
  app.use((req, res, next) => {
    req.operation = { ...asOperation, method: req.method };
    res.set({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    next();
  });
  app.get('/socket', async (req, res) => {
    if (req.handshake === undefined) {
      throw new DomainError('invalid', 'NO_WEBSOCKET', 'This address is for WebSockets only.');
    }
    // A page of another origin may not connect, even with a token.
    refuseForeignPage(req, (origin) => origin === config.ports.desktopOrigin);
    const viewed = await admit(req, res);
    const leave = 'code' in viewed ? () => undefined : open.enter(viewed.session.id);
    whenClosed(res, leave);
    const socket = acceptUpgrade(server, req, res, req.handshake);
    openConnection(socket, {
      req,
      limits,
      closing,
      // The viewing checks this itself, and closes with a reason.
      isAllowed: () => Promise.resolve('yes'),
      open: (connection) => {
        if ('code' in viewed) connection.close(viewed.code, viewed.reason);
        else new Viewing({ deps, connection, log: req.log, ...viewed }).run();
      },
    });
  });
  app.use(viewFiles(config));
  app.use((_req, _res, next) => next(new DomainError('notFound', 'NOT_FOUND', 'There is nothing at this address.')));
  app.use((error: unknown, req: Request, res: Response, _next: unknown) => {
    const { status, code, detail } = describeFailure(error);
    res.locals.failureCode = code;
    if (res.headersSent) return void res.destroy();
    res.status(status).type('text/plain').send(`${detail}\n`);
    if (status === 500) req.log.error({ err: error, requestId: req.id }, code);
  });

  /** Answers a refusal as a close code of the connection: a page cannot see anything else. */
  async function admit(req: Request, res: Response): Promise<Viewed | { code: number; reason: string }> {
    const offered = offeredProtocols(req.headers['sec-websocket-protocol']);
    const token = offered.find((entry) => entry.startsWith('bearer.'))?.slice('bearer.'.length) ?? '';
    let viewer: DesktopViewer;
    try {
      viewer = await identity.desktopTokens.verify(token);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      await failures.failedAuthentication(req, res);
      return viewCodes.unknown;
    }
    const link = await findDesktopLink(database, viewer.linkId);
    const session = link === undefined ? undefined : await findDesktop(database, link.sessionId);
    if (link === undefined || session === undefined || !linkHolds(link)) return viewCodes.over;
    return { viewer, link, session };
  }

  return { takes: (hostName) => hostName === config.ports.desktopHost, handle: (req, res) => void app(req, res) };
}

const asOperation = {
  id: 'desktopPage',
  area: 'Desktops',
  path: '(the page of a desktop)',
  isPublic: true,
  takesApiKey: false,
  scope: undefined,
  bodyTypes: [],
  bodyRequired: false,
  isUpgrade: false,
  answerTypes: [],
  parameters: [],
};
