import { join } from 'node:path';
import express from 'express';
import helmet from 'helmet';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { areas as allAreas } from '../registry.ts';
import { type Area, mergeAccess } from './area.ts';
import { createAuthenticate } from './auth/passport.ts';
import { createSecurityHandlers } from './auth/securityHandlers.ts';
import { type ConnectionLimits, connectionLimits as defaultLimits } from './connectionLimits.ts';
import { type Contract, loadContract } from './contract.ts';
import type { ApiDeps, RouteDeps } from './deps.ts';
import { errorHandler } from './errors.ts';
import { createMetrics, joined, measureRequests } from './metrics.ts';
import { accessLog } from './middleware/accessLog.ts';
import { authentication } from './middleware/authentication.ts';
import { authorization, authorizationAfterBody } from './middleware/authorization.ts';
import { readBody } from './middleware/body.ts';
import { fairShare } from './middleware/fairShare.ts';
import { answerType } from './middleware/mediaTypes.ts';
import { findOperation } from './middleware/operation.ts';
import { pageErrors } from './middleware/pageErrors.ts';
import { plainHeaders, plainParameters } from './middleware/parameters.ts';
import { createRateLimits } from './middleware/rateLimits.ts';
import { requestId } from './middleware/requestId.ts';
import { streamSlots } from './middleware/streamSlots.ts';
import { createValidator } from './middleware/validator.ts';
import { crossOrigin } from './origins.ts';
import { pageFiles } from './pages/page.ts';
import { checkOrigin, upgradeRoutes } from './upgrade.ts';

/** What an API serves. */
export interface Surface {
  contract: Contract;
  areas: readonly Area[];
  connectionLimits?: ConnectionLimits;
}

/**
 * The whole API. Each request passes these steps in order: id and log line, the contract's operation, the credential,
 * the parameters, the caller's role, the body, the contract's schema, the route.
 */
export function createApp(deps: ApiDeps, surface: Surface = everything(deps.config)): express.Express {
  const { contract, areas, connectionLimits = defaultLimits } = surface;
  const authorized = authorization(contract, mergeAccess(areas), deps);
  const limits = createRateLimits(deps.config);
  const metrics = createMetrics();
  const measured = measureRequests(metrics);
  const routeDeps: RouteDeps = { ...deps, contract, limits, metrics: joined(metrics, deps.meters) };
  const validator = createValidator(contract, {
    validateResponses: deps.config.env !== 'production',
    securityHandlers: createSecurityHandlers(createAuthenticate(deps.identity)),
  });

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('trust proxy', deps.config.http.trustedProxies);
  app.set('query parser', 'simple');

  app.use(requestId(), accessLog(deps.logger), measured);
  app.use(securityHeaders());
  app.use(crossOrigin(deps));
  app.use('/auth/assets', pageFiles());
  for (const { files = {} } of areas) for (const [path, serve] of Object.entries(files)) app.use(path, serve());

  app.use(neverStored(), plainHeaders());
  app.use(findOperation(contract, validator), checkOrigin(deps), limits.anonymous);
  app.use(authentication(validator, limits), plainParameters(), answerType());
  app.use(authorized, streamSlots(deps.config));
  app.use(readBody(deps.config), fairShare(deps.config), authorizationAfterBody(deps));
  app.use(validator.request, validator.response);
  for (const { routes } of areas) for (const route of routes) app.use(route(routeDeps));
  app.use(upgradeRoutes(areas, routeDeps, connectionLimits));
  app.use(() => {
    throw new DomainError('notFound', 'NOT_FOUND', 'There is nothing at this path. /docs lists all paths.');
  });
  app.use(pageErrors(), errorHandler(areas));
  return app;
}

/** Responses other than pages may show nothing, load nothing and not be framed. Pages set policies of their own. */
function securityHeaders(): express.RequestHandler {
  const none = ["'none'"];
  const directives = { 'default-src': none, 'base-uri': none, 'form-action': none, 'frame-ancestors': none };
  return helmet({ contentSecurityPolicy: { useDefaults: false, directives }, xFrameOptions: { action: 'deny' } });
}

/**
 * Answers contain private data and sometimes credentials. No browser or proxy may store one unless its route says
 * otherwise.
 */
function neverStored(): express.RequestHandler {
  return (_req, res, next) => {
    res.setHeader('cache-control', 'no-store');
    next();
  };
}

function everything({ dataDir }: Pick<Config, 'dataDir'>): Surface {
  return { contract: loadContract({}, join(dataDir, 'cache')), areas: allAreas };
}
