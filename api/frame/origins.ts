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
/** Anybody may send any origin: so many are remembered as told. */
const maxTold = 100;

/** Which origins' pages may call the API: its own, those of the configuration, and in development this machine's. */
export function allowedOrigins(http: Config['http']): (origin: string) => boolean {
  const listed = new Set([new URL(http.publicUrl).origin, ...http.corsOrigins]);
  return (origin) => listed.has(origin) || (http.allowsLocalPages && isLocal(origin));
}

/**
 * Throws 403 `ORIGIN_NOT_ALLOWED` where a browser says that a page of another origin sends the request. CORS does not stop
 * WebSockets and plain forms, and a cookie goes with them. A client that is not a browser names no origin.
 */
export function refuseForeignPage({ headers }: IncomingMessage, isOwn: (origin: string) => boolean): void {
  const { origin } = headers;
  // A page may hide its own address: its origin is then "null", and only the browser knows whose it is.
  if (origin === undefined || headers['sec-fetch-site'] === 'same-origin' || isOwn(origin)) return;
  throw new DomainError('forbidden', 'ORIGIN_NOT_ALLOWED', 'Pages of this origin may not do this here.');
}

function isLocal(origin: string): boolean {
  return /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(origin);
}

/**
 * Lets scripts of allowed origins read what the API answers. A browser does not say why it shows its page nothing, so the
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
    // Whoever asks for an operation's methods is no page that asks for permission.
    const asksMethods = req.method === 'OPTIONS' && req.headers['access-control-request-method'] === undefined;
    if (asksMethods) next();
    else answer(req, res, next);
  };
}
