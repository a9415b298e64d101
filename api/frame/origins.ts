import type { IncomingMessage } from 'node:http';
import cors from 'cors';
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';

const exposedHeaders = [
  'content-disposition',
  'content-range',
  'etag',
  'link',
  'location',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'x-output-position',
  'x-request-id',
  'x-should-retry',
  'x-thread-id',
  'x-turn-id',
  'x-vercel-ai-ui-message-stream',
];

const methods = ['GET', 'HEAD', 'PUT', 'PATCH', 'POST', 'DELETE'];
/** Clients may send any origin, so the log names at most this many. */
const maxTold = 100;

/** Which origins' pages may call the API: its own, the configured ones, and in development those of this machine. */
export function allowedOrigins(http: Config['http']): (origin: string) => boolean {
  const listed = new Set([new URL(http.publicUrl).origin, ...http.corsOrigins]);
  return (origin) => listed.has(origin) || (http.allowsLocalPages && isLocal(origin));
}

/**
 * Throws 403 `ORIGIN_NOT_ALLOWED` when a browser says that a page of another origin sends the request. CORS does not
 * stop WebSockets and plain forms, and cookies go with them. Clients other than browsers send no Origin.
 */
export function refuseForeignPage({ headers }: IncomingMessage, isOwn: (origin: string) => boolean): void {
  const { origin } = headers;
  // A page may hide its address. Its origin is then "null", and only Sec-Fetch-Site tells where the request is from.
  if (origin === undefined || headers['sec-fetch-site'] === 'same-origin' || isOwn(origin)) return;
  throw new DomainError(
    'forbidden',
    'ORIGIN_NOT_ALLOWED',
    'Pages of this origin may not do this. The operator can allow the origin in ATRIUM_CORS_ORIGINS.',
  );
}

function isLocal(origin: string): boolean {
  return /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(origin);
}

/**
 * Lets scripts of allowed origins read the API's answers. A browser does not tell its page why it was refused, so the
 * log names each other origin once.
 */
export function crossOrigin({ config, logger }: { config: Pick<Config, 'http'>; logger: Logger }): RequestHandler {
  const isAllowed = allowedOrigins(config.http);
  const told = new Set<string>();
  const answer = cors({
    exposedHeaders,
    methods,
    maxAge: 600,
    origin(origin, decide) {
      if (origin === undefined || isAllowed(origin)) return decide(null, true);
      if (told.size < maxTold && !told.has(origin)) {
        told.add(origin);
        logger.warn(
          { origin: origin.slice(0, 300) },
          'pages of this origin cannot call the API: ATRIUM_CORS_ORIGINS lacks it',
        );
      }
      decide(null, false);
    },
  });
  return (req, res, next) => {
    // An OPTIONS request without this header asks for a path's methods. It is not a preflight.
    const asksMethods = req.method === 'OPTIONS' && req.headers['access-control-request-method'] === undefined;
    if (asksMethods) next();
    else answer(req, res, next);
  };
}
